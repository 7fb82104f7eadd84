// Lines for people on stderr, written by a thread of their own: a terminal that is stopped, or a
// pipe that nobody reads, holds up neither heartbeats nor workers.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace ddp::launcher {

// Keeps the newest lines where more come than can be written. The thread starts with the first
// line, so a launch that has nothing to say has none.
class Console {
 public:
  Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  // Waits for what is still to be written, without limit: drain() first.
  ~Console();

  void line(const std::string& text);  // "ddplaunch: text\n", in one write, control characters as ?
  void text(const std::string& text);  // as it is, in one write
  // Until everything is written or dropped, at most for that long. False: stderr takes nothing, and
  // only ending the process gets past the thread that is stuck in it.
  [[nodiscard]] bool drain(std::chrono::seconds limit);

 private:
  struct Writer;
  Writer& writer();

  std::unique_ptr<Writer> writer_;
};

}  // namespace ddp::launcher
