// What agent and coordinator say to each other, as values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "rendezvous/core/membership.h"

namespace ddp::rendezvous {

inline constexpr std::int32_t kMinProtocolVersion = 1;
inline constexpr std::int32_t kMaxProtocolVersion = 1;

struct Hello {
  std::int32_t min_version = kMinProtocolVersion;
  std::int32_t max_version = kMaxProtocolVersion;
  std::string job;  // run id
  NodeDescription node;
  std::string nonce;  // for the proof
  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Welcome {
  std::int32_t version = kMaxProtocolVersion;
  bool embedded = false;  // the coordinator dies with the agent beside it
  Duration heartbeat = std::chrono::milliseconds(1000);
  Duration timeout = std::chrono::milliseconds(5000);
  friend bool operator==(const Welcome&, const Welcome&) = default;
};
struct StatusMessage {
  std::int64_t sequence = 0;  // rises with each one that this agent sends
  NodeStatus status;
  friend bool operator==(const StatusMessage&, const StatusMessage&) = default;
};
struct OrderMessage {
  std::int64_t sequence = 0;  // of the newest status that the coordinator has seen of this node
  Order order;
  friend bool operator==(const OrderMessage&, const OrderMessage&) = default;
};
struct RefuseMessage {
  std::int32_t exit_code = exit_code::kRefused;
  std::string reason;
  friend bool operator==(const RefuseMessage&, const RefuseMessage&) = default;
};

using Message = std::variant<Hello, Welcome, StatusMessage, OrderMessage, RefuseMessage>;

}  // namespace ddp::rendezvous
