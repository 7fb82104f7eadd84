// A worker store on the loop of the test's own thread, and raw connections to it.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/io/worker_store.h"
#include "tests/unit/rendezvous/store_requests.h"

namespace ddp::rendezvous::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

inline constexpr auto kDeadline = std::chrono::seconds(10);

// A store on the loop of this thread, which runs while a client waits for something.
struct ServerScene {
  explicit ServerScene(WorkerStoreOptions options = {}, bool takes_agents = false) {
    if (takes_agents) {
      options.agent_acceptor = [this](tcp::socket socket, std::string already_read) {
        agents.push_back(std::move(socket));
        agent_bytes = std::move(already_read);
      };
    }
    auto opened = WorkerStore::open(context, options);
    REQUIRE(opened.ok());
    store = std::move(opened).value();
  }

  // False if `done` doesn't come true in time.
  template <typename Condition>
  bool run_until(Condition done) {
    const auto end = Clock::now() + kDeadline;
    while (!done()) {
      if (Clock::now() > end) return false;
      context.run_one_for(std::chrono::milliseconds(5));
      context.restart();
    }
    return true;
  }

  asio::io_context context{1};  // outlives the sockets below
  std::vector<tcp::socket> agents;
  std::string agent_bytes;
  std::unique_ptr<WorkerStore> store;
};

// A raw connection to it; the calls that wait let the store run meanwhile.
class RawClient {
 public:
  explicit RawClient(ServerScene& scene, const std::string& address = "127.0.0.1")
      : scene_(scene), socket_(scene.context) {
    socket_.connect({asio::ip::make_address(address), scene.store->endpoint().port.value});
    socket_.non_blocking(true);
  }

  void send(std::string_view bytes) {
    REQUIRE(scene_.run_until([&] {
      const ssize_t sent =
          ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      return bytes.empty();
    }));
  }
  void ask(const StoreRequest& request, StoreDialect dialect = StoreDialect::c) {
    send(encoded(dialect, request));
  }
  void greet() { ask(plain_request(StoreCode::validate)); }

  std::string receive(std::size_t length) {
    std::string got;
    std::string piece(1U << 16, '\0');
    const bool in_time = scene_.run_until([&] {
      ssize_t n = 1;
      while (n > 0 && got.size() < length) {
        const std::size_t want = std::min(piece.size(), length - got.size());
        n = ::recv(socket_.native_handle(), piece.data(), want, 0);
        if (n > 0) got.append(piece, 0, static_cast<std::size_t>(n));
      }
      return got.size() == length;
    });
    CHECK(in_time);
    return got;
  }
  std::string receive_bytes() { return receive(read_u64(receive(8))); }
  std::int64_t receive_number() { return read_i64(receive(8)); }
  // The store has closed the connection; what it had sent before is thrown away.
  bool closed() {
    char byte = 0;
    return scene_.run_until([&] {
      const ssize_t n = ::recv(socket_.native_handle(), &byte, 1, 0);
      return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    });
  }
  // Everything sent so far has been carried out; nothing had come back before the answer.
  std::int64_t count_keys(StoreDialect dialect = StoreDialect::c) {
    ask(plain_request(StoreCode::get_num_keys), dialect);
    return receive_number();
  }
  [[nodiscard]] bool silent() const { return socket_.available() == 0; }
  tcp::socket& socket() { return socket_; }

 private:
  ServerScene& scene_;
  tcp::socket socket_;
};

}  // namespace ddp::rendezvous::test
