// Starts worker processes: as fast as posix_spawn, each in a session of its own, none outliving us.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/core/launch_config.h"
#include "launcher/io/pid_namespace.h"
#include "launcher/io/program_search.h"
#include "launcher/io/signal_state.h"
#include "launcher/io/unique_fd.h"

namespace ddp::launcher {

inline constexpr int kWorkerControlPageFd = 3;  // what DDP_SHM_FD names

// A child that was started; whoever holds it must reap it.
struct SpawnedProcess {
  pid_t pid = -1;
  pid_t own_number = -1;  // as it sees itself: another one in a PID namespace
  UniqueFd pidfd;
  UniqueFd second_pidfd;  // for the one that owns the process; made here, where room can run out
};

// What a worker gets as stdout and stderr; -1: ours.
struct StandardStreams {
  int out = -1;
  int err = -1;
  bool terminal = false;  // what is given is the worker's controlling terminal
};

// Borrowed: with hundreds of workers the copies would be what a launch waits for.
struct WorkerCommand {
  const std::vector<std::string>& arguments;
  const Environment& environment;
  Environment additions = {};  // win over `environment`
  StandardStreams streams = {};
};

// The same for every worker of a launcher.
struct SpawnSettings {
  std::optional<rlimit> limit_of_files;  // given back to workers
  std::optional<Birthplace> birthplace;  // the namespaces in which they begin, if not ours
  SignalState signals{};                 // what they ignore and block
};

// One for a round. The child makes only raw system calls between its birth and exec: new session,
// signals as they are to be, SIGKILL when the calling thread dies, the original limits, and no
// descriptors but 0, 1, 2 and the control page.
class Spawner {
 public:
  // `control_page` may be -1, and outlives the spawner.
  Spawner(int control_page, SpawnSettings settings);
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner();

  [[nodiscard]] std::variant<SpawnedProcess, SpawnRefusal> start(const WorkerCommand& command);

 private:
  const std::vector<std::string>& candidates_of(const WorkerCommand& command);
  [[nodiscard]] bool take_down(StandardStreams& streams);

  int control_page_;
  SpawnSettings settings_;
  void* stack_ = nullptr;
  // Low numbers, taken early. The child copies our table up to the highest that it needs, and what
  // is made for the last of many workers has a high one.
  std::array<UniqueFd, 2> low_;
  // Not as workers are to find them, and what these are to do: SIG_DFL or SIG_IGN.
  std::vector<std::pair<int, sighandler_t>> changed_signals_;
  // The workers of a round run the same program: searched once.
  std::pair<std::string, std::string> searched_;  // name, PATH
  std::optional<std::vector<std::string>> found_;
};

}  // namespace ddp::launcher
