// Ends a plug-in's calls when somebody has died: a plug-in sees closed sockets, but neither a node
// that fell silent nor, on a GPU, a rank that no longer takes part.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ddp::sdk {

class DeathWatch {
 public:
  // Asks `died` about ten times a second, from a thread of its own; the first time that it says yes
  // calls `abort`, and ends. Neither may throw.
  DeathWatch(std::function<bool()> died, std::function<void()> abort);
  DeathWatch(const DeathWatch&) = delete;
  DeathWatch& operator=(const DeathWatch&) = delete;
  // Not in a forked child, which has no such thread.
  ~DeathWatch();

 private:
  void watch();

  std::function<bool()> died_;
  std::function<void()> abort_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ddp::sdk
