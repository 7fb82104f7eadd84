// The control page of one round: made before the workers, poisoned when one of them dies.
#pragma once

#include <cstdint>

#include "launcher/io/unique_fd.h"
#include "rendezvous/core/control_page.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

class SharedPage {
 public:
  // Throws std::system_error.
  SharedPage(const rendezvous::Placement& placement, std::uint32_t local_world_size);
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  ~SharedPage();

  [[nodiscard]] int fd() const { return fd_.get(); }

  // The first death wins; every later call does nothing. Wakes all that sleep on the page.
  void poison(const rendezvous::Failure& failure);

 private:
  UniqueFd fd_;
  rendezvous::ControlPage* page_ = nullptr;
};

}  // namespace ddp::launcher
