// The file of --events: appends lines from a thread of its own, so that a slow disk or a pipe that
// nobody reads holds up nothing.
#pragma once

#include <boost/asio/io_context.hpp>
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

  // `on_trouble` is called from the loop or from give_up(), once.
  EventFile(boost::asio::io_context& context, UniqueFd file, EventLines lines,
            std::function<void(const std::string& text)> on_trouble);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  void note_launch();
  void note(const AgentEvent& event);
  void note(const AgentEffects& effects);

  // Once, from the loop, as soon as all is written or dropped.
  void when_written(std::function<void()> call);
  // What is held won't be written any more. Says so.
  void give_up();
  // False: only ending the process gets past a thread that is stuck.
  [[nodiscard]] bool idle() const;

 private:
  struct State;

  void append(std::string lines);
  void tell_trouble();

  boost::asio::io_context& context_;
  EventLines lines_;
  std::function<void(const std::string& text)> on_trouble_;
  std::shared_ptr<State> state_;  // the thread's too
  std::thread thread_;
};

}  // namespace ddp::launcher
