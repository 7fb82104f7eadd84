#include "launcher/io/console.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <system_error>

#include "launcher/core/failure_text.h"

namespace ddp::launcher {
namespace {

// Hands lines on; it blocks nobody, so no thread of its own is needed.
class WriterSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit WriterSink(std::function<void(std::string_view text)> write) : write_(std::move(write)) {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%v", spdlog::pattern_time_type::local, std::string()));
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    write_({message.payload.data(), message.payload.size()});
  }
  void flush_() override {}

  std::function<void(std::string_view text)> write_;
};

std::string name_of(Sink sink) {
  return sink == Sink::out ? "stdout" : "stderr";
}

std::string reason_of(const OutputWriter::Losses& lost) {
  if (lost.error != 0) return std::generic_category().message(lost.error);
  if (lost.late) return "it was not read in time";
  return "it took none for " + std::to_string(OutputWriter::kStuckAfter.count()) + " s";
}

}  // namespace

Console::Console(boost::asio::io_context& context, bool speaks_on_out)
    : out_(context, STDOUT_FILENO), err_(context, STDERR_FILENO), speaks_on_out_(speaks_on_out) {
  out_.writer.on_error([this](int error) { report_error(Sink::out, error); });
  err_.writer.on_error([this](int error) { report_error(Sink::err, error); });
}

Console::~Console() = default;

void Console::line(const std::string& text) {
  this->text("ddplaunch: " + printable(text) + "\n");
}

void Console::text(const std::string& text) {
  if (text.empty()) return;
  if (!logger_) {
    logger_ = std::make_shared<spdlog::logger>(
        "ddplaunch",
        std::make_shared<WriterSink>([this](std::string_view lines) { write_lines(lines); }));
  }
  logger_->log(spdlog::level::info, spdlog::string_view_t(text));
}

void Console::output(Sink sink, std::string_view bytes) {
  const bool shown = status_shown();
  Stream& to = stream(sink);
  to.writer.write(to.composed.before_output(bytes));
  to.writer.write(bytes);
  look_at_status(shown);
}

void Console::write_lines(std::string_view lines) {
  const bool shown = status_shown();
  err_.writer.write(err_.composed.lines(lines));
  look_at_status(shown);
}

void Console::look_at_status(bool was_shown) {
  const bool can_come = status_left_out_ && err_.composed.can_draw();
  if (!can_come && was_shown == status_shown()) return;
  status_left_out_ = false;
  if (status_due_) status_due_();
}

void Console::show_status(std::string_view status, std::size_t width) {
  status_left_out_ = !status.empty() && !err_.composed.can_draw();
  if (status.empty() || err_.writer.has_room()) {
    err_.writer.write(err_.composed.draw(status, width));
  }
}

bool Console::has_room(Sink sink) const {
  return stream(sink).writer.has_room();
}

void Console::when_room(Sink sink, std::function<void()> call) {
  stream(sink).writer.when_room(std::move(call));
}

// On the other one, where that is ours to write to: nothing is ever added to a stdout that workers
// write to themselves.
void Console::say_on(Sink sink, const std::string& text) {
  if (sink == Sink::err) return line(text);
  if (speaks_on_out_)
    out_.writer.write(out_.composed.lines("ddplaunch: " + printable(text) + "\n"));
}

void Console::report_error(Sink sink, int error) {
  say_on(sink == Sink::out ? Sink::err : Sink::out, name_of(sink) + " can't be written (" +
                                                        std::generic_category().message(error) +
                                                        "): output is lost, the job goes on");
}

void Console::when_written(std::function<void()> call) {
  // One after the other: meanwhile the first has nothing new to write.
  out_.writer.when_written([this, call = std::move(call)] { err_.writer.when_written(call); });
}

void Console::drop() {
  out_.writer.drop();
  err_.writer.drop();
}

void Console::say_losses() {
  for (const Sink sink : {Sink::out, Sink::err}) {
    const OutputWriter::Losses lost = stream(sink).writer.losses();
    if (lost.bytes == 0) continue;
    const std::string text = std::to_string(lost.bytes) + " bytes of output for " + name_of(sink) +
                             " were lost: " + reason_of(lost);
    line(text);
    if (sink == Sink::err) say_on(Sink::out, text);
  }
}

}  // namespace ddp::launcher
