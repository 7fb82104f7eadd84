#include "worker_sdk/backends/death_watch.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace ddp::sdk {

DeathWatch::DeathWatch(std::function<bool()> died, std::function<void()> abort)
    : died_(std::move(died)), abort_(std::move(abort)) {
  // The program's signals are for the program's threads: a new one inherits the mask.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DeathWatch::~DeathWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void DeathWatch::watch() {
  constexpr std::chrono::milliseconds kSlice{100};
  std::unique_lock lock(mutex_);
  while (!stopping_.wait_for(lock, kSlice, [this] { return stop_; })) {
    if (died_()) return abort_();
  }
}

}  // namespace ddp::sdk
