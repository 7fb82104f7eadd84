// Keeps the line below a terminal's output up to date that says what is waited for.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "launcher/io/console.h"

namespace ddp::launcher {

// For a terminal that nobody else writes to. Drawn only while our guardian is in the foreground: in
// the background the line would land in what the user types.
class StatusLine {
 public:
  using Words = std::function<std::string()>;  // empty: nothing is waited for

  StatusLine(boost::asio::io_context& context, Console& console, pid_t guardian, Words words);
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();  // erases it

  // The words may have changed.
  void look();
  // The terminal is about to be somebody else's.
  void hide();

 private:
  void draw();
  void draw_after(std::chrono::milliseconds pause);

  Console& console_;
  pid_t guardian_;
  Words words_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point due_{};  // of the timer
  bool waiting_ = false;                         // the timer runs
};

}  // namespace ddp::launcher
