// The launcher's line to the coordinator of its job, be that in this process or on another host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/core/membership.h"

namespace ddp::rendezvous {

// Always called from the loop, never from inside a call of the link's owner.
struct LinkCallbacks {
  // Whenever the order changes; the newest one holds. May be the same as the last after a
  // reconnect.
  std::function<void(const Order& order)> on_order;
  // Once, and nothing follows: the coordinator can't be reached and no verdict is held. The reason
  // is one sentence for people.
  std::function<void(std::int32_t exit_code, const std::string& reason)> on_lost;
  // For -v: what the link does. May be empty.
  std::function<void(const std::string& text)> on_note;
  // There is no connection, and why; the link goes on trying. May be empty.
  std::function<void(const std::string& text)> on_trouble;
};

// Destroying the link ends it: no callback comes afterwards, and the coordinator sees the node
// gone.
class CoordinatorLink {
 public:
  CoordinatorLink() = default;
  CoordinatorLink(const CoordinatorLink&) = delete;
  CoordinatorLink& operator=(const CoordinatorLink&) = delete;
  virtual ~CoordinatorLink() = default;

  // Joins the job `run_id` as that node. Once.
  virtual void start(const std::string& run_id, const NodeDescription& description) = 0;
  // What holds on this node from now on. Repeated as heartbeat by the link itself.
  virtual void report(const NodeStatus& status) = 0;
  // A thread is in a name lookup, which nothing interrupts: the io_context can't be destroyed until
  // it returns.
  [[nodiscard]] virtual bool is_looking_up() const { return false; }
};

}  // namespace ddp::rendezvous
