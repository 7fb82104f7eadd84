// One node's half of the agent protocol: connects, says hello, keeps telling, comes back, gives up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/message.h"
#include "rendezvous/core/random_bits.h"
#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

// One attempt to connect and what comes of it. Never used twice.
using ConnectionId = Strong<struct ConnectionTag, std::uint64_t>;

struct StatusChanged {
  NodeStatus status;
};
struct Connected {
  ConnectionId connection;
};
struct ConnectionFailed {  // could not be made, or was closed
  ConnectionId connection;
  std::string reason;
};
struct MessageArrived {
  ConnectionId connection;
  Message message;
};
using MemberEvent = std::variant<StatusChanged, Connected, ConnectionFailed, MessageArrived>;

struct Connect {
  ConnectionId connection;
};
struct Disconnect {
  ConnectionId connection;
};
struct Send {
  ConnectionId connection;
  Message message;
};
struct DeliverOrder {
  Order order;
};
struct GiveUp {
  std::int32_t exit_code;
  std::string reason;
};
struct Remark {
  std::string text;
  bool trouble = false;  // there is no connection, and why; else only for -v
};
using MemberEffect = std::variant<Connect, Disconnect, Send, DeliverOrder, GiveUp, Remark>;
using MemberEffects = std::vector<MemberEffect>;

struct MemberSetup {
  std::string run_id;
  NodeDescription node;
  std::string coordinator;  // host:port, for people
  std::string nonce;        // hexadecimal
  std::uint64_t seed = 0;   // spreads the reconnects of many nodes
  Duration coordinator_timeout = std::chrono::seconds(60);
  Duration embedded_timeout = std::chrono::seconds(5);  // it died with its agent
  Duration connect_timeout = std::chrono::seconds(10);
};

// Knows nothing of workers. Every order that arrives is delivered, also one that repeats the last:
// it is a sign of life.
class Member {
 public:
  explicit Member(MemberSetup setup);

  // First call: connects. Then whenever next_deadline() has come.
  [[nodiscard]] MemberEffects on_time(Instant now);
  [[nodiscard]] MemberEffects handle(const MemberEvent& event, Instant now);
  [[nodiscard]] std::optional<Instant> next_deadline() const;

 private:
  struct NotStarted {};
  struct Connecting {
    ConnectionId connection;
    Instant give_up_at;
  };
  struct Greeting {  // hello is out
    ConnectionId connection;
    Instant give_up_at;
  };
  struct Joined {
    ConnectionId connection;
    Instant next_heartbeat;
    Instant last_answer;
  };
  struct Pausing {
    Instant until;
  };
  struct Done {};
  using State = std::variant<NotStarted, Connecting, Greeting, Joined, Pausing, Done>;

  void on(const StatusChanged& event, Instant now, MemberEffects& effects);
  void on(const Connected& event, Instant now, MemberEffects& effects);
  void on(const ConnectionFailed& event, Instant now, MemberEffects& effects);
  void on(const MessageArrived& event, Instant now, MemberEffects& effects);
  void on_message(const Welcome& welcome, Instant now, MemberEffects& effects);
  void on_message(const OrderMessage& message, Instant now, MemberEffects& effects);
  void on_message(const RefuseMessage& message, Instant now, MemberEffects& effects);
  void on_message(const Hello&, Instant, MemberEffects&) {}
  void on_message(const StatusMessage&, Instant, MemberEffects&) {}

  void connect(Instant now, MemberEffects& effects);
  void reconnect_later(const std::string& why, Instant now, MemberEffects& effects);
  void send_status(Joined& joined, Instant now, MemberEffects& effects);
  void give_up_if_time(Instant now, MemberEffects& effects);
  void finish(MemberEffects& effects);
  void forgive_pause(Instant now);
  [[nodiscard]] std::optional<ConnectionId> connection() const;
  [[nodiscard]] Instant patience_ends() const;

  MemberSetup setup_;
  RandomBits random_;
  State state_;
  NodeStatus status_;
  Instant status_since_;
  Welcome terms_;                   // the coordinator's, from its last welcome
  std::optional<Instant> contact_;  // when it was last heard; at first: when we started
  bool was_welcome_ = false;
  std::optional<Verdict> verdict_;  // held: binding even if the coordinator never comes back
  std::string last_problem_;
  Duration back_off_{};
  std::uint64_t connections_ = 0;
  std::int64_t sequence_ = 0;
};

}  // namespace ddp::rendezvous
