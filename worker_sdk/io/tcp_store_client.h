// The client of a TCPStore server (dialect C).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/tcpstore_wire.h"
#include "worker_sdk/io/key_value_client.h"
#include "worker_sdk/io/shared_memory.h"

namespace ddp::sdk {

class TcpStoreClient final : public KeyValueClient {
 public:
  // Connects; a server that is not there yet is tried again and again until the timeout.
  // Throws Timeout, Unavailable.
  TcpStoreClient(std::string host, std::uint16_t port, Milliseconds timeout);

  // Asked while a call waits; not while another thread uses the client.
  void set_watch(Watch watch) { watch_ = std::move(watch); }
  [[nodiscard]] std::string local_address() const { return connection_->local_address(); }

  void set(std::string_view key, std::string_view value) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  void wait(const Keys& keys, Milliseconds timeout) override;
  std::vector<std::string> get_all(const Keys& keys, Milliseconds timeout) override;
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired) override;
  bool delete_key(std::string_view key) override;
  std::int64_t num_keys() override;
  bool check(const Keys& keys) override;
  [[nodiscard]] Milliseconds timeout() const override { return timeout_; }

 private:
  void connect();
  void try_to_connect(const Deadline& deadline);
  template <typename Body>
  auto use(Body&& body);
  [[noreturn]] void lost(const std::string& reason);
  void wait_locked(const Keys& keys, const Deadline& deadline);
  [[nodiscard]] bool cancel_wait(Milliseconds patience);
  void cancel_wait_or_hang_up();
  [[nodiscard]] Keys find_missing(const Keys& keys);
  void send(const std::string& request);
  [[nodiscard]] std::string receive(std::size_t size);
  [[nodiscard]] std::string receive_bytes();
  void check_size(std::string_view key, std::string_view value = {}) const;

  std::string host_;
  std::uint16_t port_;
  Milliseconds timeout_;
  rendezvous::StoreLimits limits_;
  ForkGuard guard_;
  std::mutex mutex_;
  std::optional<Connection> connection_;
  Watch watch_;
};

}  // namespace ddp::sdk
