// The file of --events: appends lines from a thread of its own, so that a slow disk or a pipe that
// nobody reads holds up nothing.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "launcher/core/event_lines.h"
#include "launcher/io/unique_fd.h"

namespace ddp::launcher {

// What does not fit into the queue, or can't be written, is dropped; that is said once, and the job
// goes on. All calls come from the loop's thread.
class EventFile {
 public:
  static constexpr std::size_t kMostHeld = 1 << 20;  // bytes

  // Makes it if it isn't there, and follows no symbolic link. Else: why not, for people.
  static std::variant<UniqueFd, std::string> open(const std::string& path);

  // `on_trouble` is called from the loop or from drain(), once.
  EventFile(boost::asio::io_context& context, UniqueFd file, EventLines lines,
            std::function<void(const std::string& text)> on_trouble);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  void note_launch();
  void note(const AgentEvent& event);
  void note(const AgentEffects& effects);

  // Until all is written or dropped, at most for that long. False: the thread is stuck, and only
  // ending the process gets past it.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit);

 private:
  struct State;

  void append(std::string lines);
  void tell_trouble();

  EventLines lines_;
  std::function<void(const std::string& text)> on_trouble_;
  std::shared_ptr<State> state_;  // the thread's too
  std::thread thread_;
};

}  // namespace ddp::launcher
