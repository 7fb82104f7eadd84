// The agent's side of the workers' PID namespace: makes it, lets workers be born in it, empties it.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/io/unique_fd.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {

// Where workers are born: descriptors that the namespace owns.
struct Birthplace {
  int init = -1;       // pidfd of the namespace's first process
  int namespaces = 0;  // CLONE_NEW… flags: those of init that the worker shares
  int root = -1;       // as they are seen from there
  int folder = -1;
};

class PidNamespace {
  struct Key {};  // only make() can make one

 public:
  // From a process that has no threads yet. An error says why there can't be one.
  [[nodiscard]] static rendezvous::Result<std::unique_ptr<PidNamespace>> make();

  explicit PidNamespace(Key);
  PidNamespace(const PidNamespace&) = delete;
  PidNamespace& operator=(const PidNamespace&) = delete;
  // Kills everything in it. What could not be killed the guardian waits for.
  ~PidNamespace();

  [[nodiscard]] Birthplace birthplace() const;
  // Why processes in it see the outside's /proc; empty: they see their own.
  [[nodiscard]] const std::string& proc_trouble() const { return proc_trouble_; }

  // A child of ours that is none of the workers'. Not any more once it has died by itself.
  [[nodiscard]] bool is_init(pid_t pid) const { return pid == init_; }

  // Kills and reaps all that is in it; not while a worker lives. Calls `on_done` from `context`'s
  // loop, with a text if something could not be killed. What is in the sessions `spared` (by the
  // namespace's own count) is told to end by `signal`, and waited for; not where processes in it
  // see another /proc, for then nobody there can be told apart.
  using OnSwept = std::function<void(const std::string& left)>;
  void sweep(boost::asio::io_context& context, std::vector<pid_t> spared, int signal,
             OnSwept on_done);
  void spare_nobody();  // from now on, in a sweep that is under way

 private:
  // What is there only between a request and its answer.
  struct Sweep;

  void ask_to_sweep(const std::vector<pid_t>& spared, int signal);
  void wait_for_answer();
  void read_answer();

  pid_t init_ = -1;
  UniqueFd pidfd_;
  UniqueFd socket_;
  UniqueFd root_;
  UniqueFd folder_;
  int namespaces_ = 0;
  std::string proc_trouble_;
  std::unique_ptr<Sweep> sweep_;
  unsigned requests_ = 0;
};

}  // namespace ddp::launcher
