// What carries the bytes of one group: the face that every back-end shows to the SDK's core.
#pragma once

#include <chrono>
#include <string>

#include "worker_sdk/core/call.h"

namespace ddp::sdk {

// Calls come from one thread at a time, with arguments that check_call has seen. After a throw the
// back-end is broken; it is only destroyed then.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  // Throws Timeout, PeerLost, Mismatch, Unavailable.
  virtual void run(const Call& call, std::chrono::milliseconds timeout) = 0;
};

}  // namespace ddp::sdk
