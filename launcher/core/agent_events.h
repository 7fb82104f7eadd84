// What can happen to an agent and what it may ask for: the words between the agent machine and its
// shell.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/core/worker_plan.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

using rendezvous::Failure;
using rendezvous::LocalRank;
using rendezvous::NodeStatus;
using rendezvous::Order;
using rendezvous::Placement;
using rendezvous::RoundId;
using rendezvous::Verdict;

// ---- what can happen -------------------------------------------------------------------------

struct OrderReceived {
  Order order;
};
struct CoordinatorLost {
  std::int32_t exit_code;
  std::string reason;
};                          // the member gave up
struct CoordinatorSilent {  // the member has no connection and goes on trying
  std::string reason;
};
struct StoreOpened {
  RoundId round;
  Endpoint endpoint;
};
struct StoreFailed {
  RoundId round;
  std::string reason;
};
struct WorkersSpawned {
  RoundId round;
  std::vector<std::int64_t> pids;
};                    // by local rank
struct SpawnFailed {  // those that had been started are already killed and reaped, but `not_killed`
  RoundId round;
  LocalRank local_rank;
  std::int32_t exit_code;  // 126, 127, or 1 where this host had no room for another process
  std::string reason;
  std::vector<std::int64_t> not_killed = {};  // pids of those that even SIGKILL didn't end in time
};
struct WorkerExit {
  LocalRank local_rank;
  std::int32_t exit_code = -1;  // -1 if killed by `signal`
  std::int32_t signal = 0;
  bool core_dumped = false;
  std::string message = {};  // from the worker's error file, empty if it wrote none
  std::optional<std::chrono::microseconds> failed_at = {};  // wall time, from there
  std::chrono::microseconds told_at = {};                   // wall time of this event
  std::string last_output = {};   // last lines of stderr (of all, where both go one way)
  bool oom_killed = false;        // the kernel counts a kill for want of memory since its start
  std::string oom_counter = {};   // whose kills those are; empty: not looked at
  std::int64_t peak_memory = -1;  // bytes
};
struct WorkersExited {
  RoundId round;
  std::vector<WorkerExit> exits;  // found in one look: their order means nothing
};
struct RemainsGone {
  RoundId round;
};  // after SweepRemains: nothing of the round is alive on this node
struct SignalReceived {
  std::int32_t signal;
  bool passed_on = true;  // by the guardian; false: it was sent to the agent itself
};
struct GuardianLost {};

using AgentEvent = std::variant<OrderReceived, CoordinatorLost, CoordinatorSilent, StoreOpened,
                                StoreFailed, WorkersSpawned, SpawnFailed, WorkersExited,
                                RemainsGone, SignalReceived, GuardianLost>;

// ---- what to do ------------------------------------------------------------------------------

struct ReportStatus {
  NodeStatus status;
};  // to the coordinator, by the member
struct OpenStore {
  RoundId round;
};                     // a new, empty map in place of the last; answered: StoreOpened, StoreFailed
struct CloseStore {};  // every store of this agent
struct SpawnWorkers {
  Placement placement;
  RoundPlan plan;
};
struct SignalWorker {
  LocalRank local_rank;
  std::int32_t signal;
  // It shall end: what of it lives on, should it die before SIGKILL, gets the signal too.
  bool to_end = false;
};  // the worker's own process only
struct KillWorker {
  LocalRank local_rank;
};                        // everything of the worker's
struct PauseWorkers {};   // SIGSTOP to everything of every worker's
struct ResumeWorkers {};  // SIGCONT likewise
// The user has suspended the job: the shell must see it stop. A guardian that can't be stopped
// answers with SIGCONT, as does one that is continued.
struct StopGuardian {};
struct ContinueGuardian {
  bool runs = false;  // it has told us itself: a SIGCONT would take back a new Ctrl-Z of the user's
};
struct Hurry {
};  // asked again, or the guardian is lost: wait for nobody any more, also after ExitAgent
struct SweepRemains {
  RoundId round;
  // What these left isn't killed: it is told to end, by `signal`, and waited for.
  std::vector<LocalRank> spared = {};
  std::int32_t signal = 0;
};  // hear out, kill and reap what workers left behind; answered by RemainsGone
struct KillRemains {
  RoundId round;
};  // while SweepRemains isn't answered: nothing is spared or waited for any more
struct PublishDeath {
  Failure failure;
};            // to survivors' control page and store, before anyone is stopped
struct Say {  // one line for people, on stderr
  enum class Level : std::uint8_t { note, warning, error } level;
  std::string text;
};
struct EndCount {
  std::int32_t exit_code = -1;  // -1 if killed by `signal`
  std::int32_t signal = 0;
  std::int32_t count = 0;
  friend bool operator==(const EndCount&, const EndCount&) = default;
};
struct ExitAgent {
  std::int32_t exit_code;
  std::optional<Verdict> verdict;    // absent: the coordinator gave none
  std::string reason = {};           // then: why we leave; a Say has told it
  std::int32_t workers_stopped = 0;  // on this node in the last round: ended as we asked them to
  std::vector<EndCount> others_failed = {};  // there too: beside the first cause, not as we asked
};

using AgentEffect =
    std::variant<ReportStatus, OpenStore, CloseStore, SpawnWorkers, SignalWorker, KillWorker,
                 PauseWorkers, ResumeWorkers, StopGuardian, ContinueGuardian, Hurry, SweepRemains,
                 KillRemains, PublishDeath, Say, ExitAgent>;
using AgentEffects = std::vector<AgentEffect>;

}  // namespace ddp::launcher
