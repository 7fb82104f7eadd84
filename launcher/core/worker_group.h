// The workers of one round on this node, from their start until nothing of theirs is left alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/core/agent_events.h"
#include "launcher/core/deaths.h"
#include "launcher/core/stop_ladder.h"
#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::launcher {

// What does not change from round to round.
struct GroupSite {
  std::string host;
  std::int32_t workers = 1;
  Duration grace{};     // between SIGTERM and SIGKILL
  bool notify = false;  // a worker that is lost is survived by the others
};

// Passive: it is told what happened and what is wanted, and appends what is to be done.
class WorkerGroup {
 public:
  enum class Stage : std::uint8_t {
    placed,     // not started
    spawning,   // SpawnWorkers has been asked for
    running,    // some worker lives, or is being stopped
    succeeded,  // all exited with 0; what they left behind may still live
    sweeping,   // no worker lives; SweepRemains has been asked for, and perhaps KillRemains
    gone,       // nothing lives
  };
  // A worker that SIGKILL has not ended after this long (state D) is written off.
  static constexpr Duration kKillPatience = std::chrono::seconds(10);
  // When the first to die says that it lost a peer: how long that peer may take to die (it dumps
  // its core, or Python tidies up) before all are stopped without knowing better.
  static constexpr Duration kCulpritPatience = std::chrono::seconds(3);

  WorkerGroup(Placement placement, GroupSite site);

  // ---- what is wanted ----
  void learn_master(const Endpoint& master);
  void start(RoundPlan plan, AgentEffects& effects);
  // Only the first call counts: the ladder is climbed once. `consequence`: what we are told to stop
  // for is, by its own words, the consequence of something else.
  void stop(std::int32_t signal, Instant now, AgentEffects& effects, bool consequence = false);
  // A user's signal: passed on even if a stop is under way.
  void forward(std::int32_t signal, Instant now, AgentEffects& effects);
  void kill(Instant now, AgentEffects& effects);
  // The user suspends the job. Workers that are told to end meanwhile go on, so that they can.
  void pause(Instant now, AgentEffects& effects);
  void resume(Instant now, AgentEffects& effects);
  // Tells survivors of a death, once a round.
  void publish(const Failure& failure, AgentEffects& effects);
  // A worker or a node of this round was lost elsewhere, and all others may live on.
  void learn_loss(const Failure& loss, AgentEffects& effects);

  // ---- what happened ----
  void spawned(const std::vector<std::int64_t>& pids, Instant now, AgentEffects& effects);
  void spawn_failed(const SpawnFailed& event, Instant now, AgentEffects& effects);
  void exited(const std::vector<WorkerExit>& exits, Instant now, AgentEffects& effects);
  void remains_gone();
  void on_time(Instant now, AgentEffects& effects);
  [[nodiscard]] std::optional<Instant> next_deadline() const;

  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] Stage stage() const { return stage_; }
  // Null also as long as its cause is waited for.
  [[nodiscard]] const DatedFailure* failure() const;
  // The first of those that were lost here, while no other worker has failed for it.
  [[nodiscard]] const DatedFailure* loss() const;
  [[nodiscard]] std::int32_t lost_count() const { return lost_count_; }
  [[nodiscard]] bool has_started() const { return !workers_.empty(); }
  [[nodiscard]] bool stop_wanted() const { return stop_signal_.has_value(); }
  [[nodiscard]] std::int32_t stopped_count() const { return stopped_count_; }
  // Ended unsuccessfully, and not as we asked them to: the first cause and what followed it.
  [[nodiscard]] const std::vector<EndCount>& failed_ends() const { return failed_ends_; }
  [[nodiscard]] std::vector<LocalRank> alive() const;
  [[nodiscard]] std::size_t size() const { return workers_.size(); }
  [[nodiscard]] std::optional<Instant> last_end() const { return last_end_; }  // of a worker
  // When those that are being stopped, or what they left, get SIGKILL; when those that got it are
  // written off.
  [[nodiscard]] std::optional<Instant> kill_at() const;
  [[nodiscard]] std::optional<Instant> write_off_at() const { return write_off_at_; }

 private:
  struct Worker {
    std::int64_t pid = -1;
    bool alive = true;
  };

  void note_exit(const WorkerExit& exit, Instant now);
  [[nodiscard]] bool is_as_asked(const WorkerExit& exit) const;
  [[nodiscard]] Failure failure_of(const WorkerExit& exit, Instant now) const;
  void act_on_deaths(Instant now, AgentEffects& effects);
  [[nodiscard]] bool is_loss(const Failure& failure) const;
  void lose(const Failure& failure, AgentEffects& effects);
  static void say_lost(const Failure& failure, AgentEffects& effects);
  // Some worker that may be the cause of another's death is not known to have ended.
  [[nodiscard]] bool others_may_follow() const;
  void note_sent(std::int32_t signal);
  void note_failed(const WorkerExit& exit);
  void advance(Instant now, AgentEffects& effects);
  void climb(const std::vector<StopEffect>& steps, Instant now, AgentEffects& effects);
  void write_off(AgentEffects& effects);
  void sweep(AgentEffects& effects);
  void kill_remains(AgentEffects& effects);
  [[nodiscard]] std::string grace_text() const;
  [[nodiscard]] std::string name(LocalRank local_rank) const;

  Placement placement_;
  GroupSite site_;
  Stage stage_ = Stage::placed;
  std::vector<Worker> workers_;
  StopLadder ladder_;
  std::optional<std::int32_t> stop_signal_;
  std::vector<std::int32_t> sent_;  // signals that we have sent to workers
  bool climbing_ = false;
  bool paused_ = false;
  Instant paused_since_{};
  bool kill_wanted_ = false;
  bool sparing_ = false;  // while sweeping: remains of some workers have their grace period
  bool remains_killed_ = false;
  bool published_ = false;
  std::optional<Failure> loss_elsewhere_;
  std::int32_t lost_count_ = 0;
  std::vector<Failure> new_losses_;  // not acted on yet
  bool failed_ = false;              // some worker, and it was no loss
  std::optional<Instant> write_off_at_;
  Deaths deaths_;
  std::optional<Instant> culprit_until_;  // until then the cause of a consequence is waited for
  std::optional<Instant> started_;
  std::optional<Instant> last_end_;
  std::int32_t stopped_count_ = 0;
  std::vector<EndCount> failed_ends_;
};

}  // namespace ddp::launcher
