// All that this process writes to its stdout and stderr while a job runs: lines for people, and
// what workers write where it passes through us.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/core/console_stream.h"
#include "launcher/io/output_writer.h"

namespace spdlog {
class logger;
}

namespace ddp::launcher {

// Our own descriptors.
enum class Sink : std::uint8_t { out, err };

// Everything for stderr goes one way, so it comes in the order in which it was said. All calls come
// from the loop's thread and never block.
class Console {
 public:
  // `speaks_on_out`: stdout is a terminal that gets all it shows from us, so it can be told what
  // stderr can't.
  explicit Console(boost::asio::io_context& context, bool speaks_on_out = false);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  void line(const std::string& text);  // "ddplaunch: text\n", control characters as ?
  void text(const std::string& text);  // whole lines as they are

  // What workers wrote, unchanged.
  void output(Sink sink, std::string_view bytes);
  [[nodiscard]] bool has_room(Sink sink) const;
  // See OutputWriter::when_room.
  void when_room(Sink sink, std::function<void()> call);

  // Below all that comes to stderr, until something else comes; see ConsoleStream::draw. Left out
  // while the terminal is slow.
  void show_status(std::string_view status, std::size_t width);
  [[nodiscard]] bool status_shown() const { return !err_.composed.drawn().empty(); }
  void forget_status() { err_.composed.forget(); }
  // Something else has come, or the unfinished line is over for which it was left out.
  void on_status_due(std::function<void()> call) { status_due_ = std::move(call); }

  // Once, from the loop, as soon as all is written, or dropped since nobody takes it. Readers of
  // output aren't told of room any more.
  void when_written(std::function<void()> call);
  // Gives up what is held.
  void drop();
  // What could not be written.
  void say_losses();
  // False: only ending the process gets past a thread that is stuck.
  [[nodiscard]] bool idle() const { return out_.writer.idle() && err_.writer.idle(); }

 private:
  struct Stream {
    Stream(boost::asio::io_context& context, int descriptor) : writer(context, descriptor) {}
    OutputWriter writer;
    ConsoleStream composed;
  };

  Stream& stream(Sink sink) { return sink == Sink::out ? out_ : err_; }
  [[nodiscard]] const Stream& stream(Sink sink) const { return sink == Sink::out ? out_ : err_; }
  void write_lines(std::string_view lines);
  void look_at_status(bool was_shown);
  void report_error(Sink sink, int error);
  void say_on(Sink sink, const std::string& text);

  Stream out_;
  Stream err_;
  bool speaks_on_out_;
  std::function<void()> status_due_;
  bool status_left_out_ = false;
  std::shared_ptr<spdlog::logger> logger_;  // made for the first line
};

}  // namespace ddp::launcher
