// A ddprendezvous that a test starts, pauses and ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace ddp::store_test {

class StoreProcess {
 public:
  // Throws std::runtime_error if it doesn't come to serve a port.
  explicit StoreProcess(const std::string& program);
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;
  ~StoreProcess();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Returns once it has really stopped.
  void pause() const;
  void resume() const;
  // Tells it to end; its exit code, or 128 + the signal that killed it.
  int end();

 private:
  [[nodiscard]] char state() const;  // as in /proc

  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace ddp::store_test
