// Reads what the workers of one round write, hands it on byte for byte, and keeps the last lines of
// each.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/core/output_tail.h"
#include "launcher/core/stream_plan.h"
#include "launcher/io/console.h"
#include "launcher/io/spawner.h"
#include "launcher/io/unique_fd.h"

namespace ddp::launcher {

// While a sink is full, what goes there isn't read, and so its writers wait.
class WorkerOutput {
 public:
  WorkerOutput(boost::asio::io_context& context, Console& console, const StreamPlan& plan,
               std::size_t workers);
  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;
  ~WorkerOutput();

  // For the worker that is started next. Ours until started() or the next call.
  [[nodiscard]] StandardStreams open(std::size_t worker);
  void started();  // the worker has its own copies

  // Call it when that worker has ended: reads what it has written last, but waits for nobody who
  // still holds its streams.
  void ended(std::size_t worker);
  // Of what it has written so far, or somebody who holds its streams.
  [[nodiscard]] std::string last_lines(std::size_t worker) const { return tails_[worker].text(); }
  // How long they who hold the streams of the dead are listened to while they say nothing, and in
  // all.
  struct Patience {
    std::chrono::milliseconds silence;
    std::chrono::milliseconds limit;
  };
  // Calls `done` as soon as nobody holds the streams of the dead: now, from the loop, or when the
  // patience is at its end. `somebody_runs`: those who are silent may just not have got a CPU.
  void hear_out(const Patience& patience, std::function<bool()> somebody_runs,
                std::function<void()> done);
  void stop_hearing();  // `done` is called now, if it wasn't yet
  // The user's terminal has another size; the kernel tells the workers.
  void pass_on_window_size();
  // The round is over: reads what is left, and closes.
  void finish();

  // Why output doesn't pass through us although it should; empty: it does.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  // A pipe or a terminal.
  struct Stream {
    UniqueFd fd;
    StreamRoute route = StreamRoute::inherited;
    bool alive = true;  // its worker is
  };
  // All that goes to one sink. The kernel's own set of what is ready stands between the streams and
  // the loop: a registration with the loop for each would cost more than the streams themselves.
  struct Channel {
    Sink sink;
    boost::asio::posix::stream_descriptor ready;
    std::vector<Stream> streams;  // by worker
  };
  enum class Got : std::uint8_t { bytes, nothing, end };

  void check_limit(std::size_t workers);
  [[nodiscard]] std::unique_ptr<Channel> open_channel(Sink sink, std::size_t workers);
  // The worker's end, -1 if there is none.
  [[nodiscard]] int open_stream(Channel& channel, StreamRoute route, std::size_t worker);
  void fall_back(StreamRoute missing, int error);

  void wait(Channel& channel);
  void on_ready(Channel& channel);
  Got read(Channel& channel, std::size_t worker);
  void read_rest(Channel& channel, std::size_t worker);
  [[nodiscard]] bool somebody_holds_streams_of_dead() const;

  boost::asio::io_context& context_;
  Console& console_;
  StreamPlan plan_;
  std::unique_ptr<Channel> out_;        // only where it has a way of its own
  std::unique_ptr<Channel> err_;        // of both, where they are joined
  std::vector<OutputTail> tails_;       // of what goes to err_, by worker
  std::vector<UniqueFd> workers_ends_;  // of the worker that is being started
  std::unique_ptr<char[]> buffer_;
  boost::asio::steady_timer hearing_limit_;
  void wait_for_silence();

  std::function<void()> heard_out_;  // set: while that is waited for
  std::function<bool()> somebody_runs_;
  Patience patience_{};
  std::chrono::steady_clock::time_point hearing_ends_;
  bool heard_something_ = false;  // since the silence is timed
  std::string trouble_;
};

}  // namespace ddp::launcher
