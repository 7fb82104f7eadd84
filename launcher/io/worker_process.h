// One running worker: notices its end by pidfd, signals it and its process group while their number
// is its own, reaps it last.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "launcher/io/boost_process.h"
#include "launcher/io/spawner.h"

namespace ddp::launcher {

struct ExitStatus {
  std::int32_t exit_code = -1;  // -1: killed by `signal`
  std::int32_t signal = 0;
  bool core_dumped = false;
  std::int64_t peak_memory = -1;  // bytes
};

// The process is Boost.Process' to own and to reap, but not to wait for: its waits reap first and
// look afterwards, and then the process group can't be signalled without the risk of hitting a
// stranger that got the number. So the end is noticed by a pidfd of our own.
class WorkerProcess {
 public:
  using OnExit = std::function<void(const ExitStatus& status)>;

  // `on_exit` is called once, from the loop, after the worker was reaped; it may not destroy this.
  WorkerProcess(boost::asio::io_context& context, SpawnedProcess process, OnExit on_exit);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  // Kills what still runs, and does not wait for it: the guardian reaps what can't be killed.
  // Not while the loop still may call `on_exit`.
  ~WorkerProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool alive() const { return alive_; }
  // Readable once the process has ended; -1 when it has been reaped.
  [[nodiscard]] int pidfd() { return alive_ ? pidfd_.native_handle() : -1; }
  // Reaps it if it has ended: then `on_exit` is not called any more. What it leaves lives on, told
  // to end as it was itself.
  [[nodiscard]] std::optional<ExitStatus> take_end();
  void signal(int signal);       // to its own process only
  void tell_to_end(int signal);  // likewise, and later to what it leaves in its process group
  void signal_all(int signal);   // to its whole process group
  void kill_all();               // SIGKILL likewise

 private:
  void wait();
  void look_again();
  [[nodiscard]] std::optional<ExitStatus> claim_from_tracer();
  void tell_group() const;
  void reap();

  using Process = boost::process::v2::basic_process<boost::asio::io_context::executor_type>;

  pid_t pid_;
  Process process_;
  boost::asio::posix::stream_descriptor pidfd_;
  boost::asio::steady_timer again_;
  std::chrono::milliseconds looked_for_{0};  // since it has ended, in vain
  OnExit on_exit_;
  int told_ = 0;  // by what signal to end
  bool alive_ = true;
};

}  // namespace ddp::launcher
