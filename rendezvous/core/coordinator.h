// The coordinator: sessions in, jobs inside, messages out. One serves many jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/job.h"
#include "rendezvous/core/message.h"

namespace ddp::rendezvous {

// One connection of an agent, or one agent of this process. Never used twice.
using SessionId = Strong<struct SessionTag, std::uint64_t>;

struct SessionOpened {
  SessionId session;
  std::string address;  // of the peer, as this host sees it
  bool local = false;   // an agent of this process
};
struct SessionClosed {
  SessionId session;
};
struct MessageReceived {
  SessionId session;
  Message message;
};
using CoordinatorEvent = std::variant<SessionOpened, SessionClosed, MessageReceived>;

struct SendMessage {
  SessionId session;
  Message message;
};
struct CloseSession {  // when all that was sent is out; nothing more is expected from it
  SessionId session;
};
struct JobClosed {  // it has its verdict, of which its nodes are being told
  std::string run_id;
  Verdict verdict;
};
struct JobStateChanged {
  std::string run_id;
  std::string line;  // one sentence for people
};
struct NodeRefused {  // said once for each reason: whoever waits for that node must be able to see
                      // why
  std::string reason;
};
using CoordinatorEffect =
    std::variant<SendMessage, CloseSession, JobClosed, JobStateChanged, NodeRefused>;
using CoordinatorEffects = std::vector<CoordinatorEffect>;

struct CoordinatorSetup {
  bool embedded = false;                // dies with the agent beside it
  std::optional<std::string> only_job;  // all others are refused
  JobTimes times;
  Duration heartbeat = std::chrono::milliseconds(1000);
  Duration hello_timeout = std::chrono::milliseconds(5000);
  Duration remembered = std::chrono::hours(1);  // a closed job: its run id means it, not a new one
  std::uint64_t seed = 0;
};

class Coordinator {
 public:
  explicit Coordinator(CoordinatorSetup setup);

  [[nodiscard]] CoordinatorEffects handle(const CoordinatorEvent& event, Instant now);
  [[nodiscard]] CoordinatorEffects on_time(Instant now);
  [[nodiscard]] std::optional<Instant> next_deadline() const;

 private:
  struct Session {
    std::string address;
    bool local = false;
    Instant opened;
    std::string run_id;  // these two: once it has said hello
    std::optional<NodeId> node;
    std::optional<Order> last_order;
  };
  struct JobEntry {
    Job job;
    std::map<NodeId, SessionId> sessions;
    std::map<NodeId, std::int64_t> sequences;  // of the newest status on the node's session
    std::string state_line;
    std::optional<Instant> closed_at;
  };

  void on(const SessionOpened& event, Instant now, CoordinatorEffects& effects);
  void on(const SessionClosed& event, Instant now, CoordinatorEffects& effects);
  void on(const MessageReceived& event, Instant now, CoordinatorEffects& effects);
  void on_hello(SessionId id, Hello hello, Instant now, CoordinatorEffects& effects);
  void on_status(SessionId id, const StatusMessage& message, Instant now,
                 CoordinatorEffects& effects);

  [[nodiscard]] std::optional<std::string> objection_to(const Hello& hello) const;
  [[nodiscard]] bool is_local(const Hello& hello) const;
  [[nodiscard]] JobEntry& entry_for(const Hello& hello, Instant now);
  void obey(JobEntry& entry, const JobEffects& wanted, Instant now, CoordinatorEffects& effects);
  void send_changed_orders(JobEntry& entry, Instant now, CoordinatorEffects& effects);
  void send_order(JobEntry& entry, SessionId id, Order order, CoordinatorEffects& effects);
  void refuse(SessionId id, Refuse refuse, CoordinatorEffects& effects);
  void close(SessionId id, CoordinatorEffects& effects);
  // Its session no longer speaks for the node.
  void detach(JobEntry& entry, const NodeId& node, CoordinatorEffects& effects);
  void forget_jobs(Instant now);

  CoordinatorSetup setup_;
  RandomBits random_;
  std::set<std::string> refusals_;  // reasons that were said
  std::map<SessionId, Session> sessions_;
  std::map<std::string, JobEntry> jobs_;  // by run id
};

}  // namespace ddp::rendezvous
