// The store's clients against servers that misbehave, and their timeouts.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <ddp/error.hpp>
#include <functional>
#include <thread>
#include <utility>

#include "worker_sdk/io/local_store.h"
#include "worker_sdk/io/tcp_store_client.h"
#include "worker_sdk/io/unique_fd.h"

namespace ddp::sdk {
namespace {

using Catch::Matchers::Contains;
using std::chrono::steady_clock;

constexpr std::size_t kGreeting = 10;  // VALIDATE and PING

// Accepts connections until it is destroyed, and plays `part` on each.
class ScriptedServer {
 public:
  using Part = std::function<void(int socket)>;

  explicit ScriptedServer(Part part) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, part = std::move(part)] {
      for (;;) {
        const UniqueFd socket(::accept(listener_.get(), nullptr, nullptr));
        if (!socket.valid()) return;
        part(socket.get());
      }
    });
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

std::string read_exactly(int socket, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t got = ::recv(socket, bytes.data(), size, MSG_WAITALL);
  return got == static_cast<ssize_t>(size) ? bytes : std::string();
}

void read_to_the_end(int socket) {
  char byte = 0;
  while (::recv(socket, &byte, 1, 0) > 0) continue;
}

void greet(int socket) {
  const std::string greeting = read_exactly(socket, kGreeting);
  if (greeting.size() == kGreeting) ::send(socket, greeting.data() + 6, 4, MSG_NOSIGNAL);
}

std::string why_not_connected(std::uint16_t port) {
  try {
    TcpStoreClient client("127.0.0.1", port, Milliseconds(300));
    return "connected";
  } catch (const Timeout& error) {
    return error.what();
  }
}

TEST_CASE("store client: a server that hangs up on the greeting may be an old PyTorch's") {
  const ScriptedServer server([](int socket) { read_exactly(socket, kGreeting); });
  CHECK_THAT(why_not_connected(server.port()),
             Contains("it closed the connection") && Contains("PyTorch before 2.5"));
}

TEST_CASE("store client: a server that is silent at the greeting may be an old PyTorch's") {
  const ScriptedServer server(read_to_the_end);
  CHECK_THAT(why_not_connected(server.port()),
             Contains("does not answer the greeting") && Contains("PyTorch before 2.5"));
}

TEST_CASE("store client: news of a death outweighs the store, which may have died with it") {
  const bool hang_up = GENERATE(true, false);
  const ScriptedServer server([hang_up](int socket) {
    greet(socket);
    if (hang_up) {
      read_exactly(socket, 1 + 8 + 8 + 1 + 1);  // WAIT for a key of one byte, then CANCEL_WAIT
    } else {
      read_to_the_end(socket);
    }
  });
  TcpStoreClient client("127.0.0.1", server.port(), Milliseconds(20'000));
  client.set_watch([] { throw PeerLost(3, "host-x", "rank 3 on host-x is lost"); });
  const auto begin = steady_clock::now();
  CHECK_THROWS_AS(client.wait({"k"}, Milliseconds(20'000)), PeerLost);
  CHECK(steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK_THROWS_AS(client.num_keys(), Unavailable);
}

TEST_CASE("store clients: the longest timeout there is does not pass at once") {
  const ScriptedServer server([](int socket) {
    greet(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const char ready = 0;
    ::send(socket, &ready, 1, MSG_NOSIGNAL);
    read_to_the_end(socket);
  });
  TcpStoreClient client("127.0.0.1", server.port(), Milliseconds::max());
  CHECK_NOTHROW(client.wait({"k"}, Milliseconds::max()));

  LocalStore local(Milliseconds::max());
  std::thread setter([&local] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    local.set("k", "v");
  });
  std::string value;
  CHECK_NOTHROW(value = local.get("k", Milliseconds::max()));
  setter.join();
  CHECK(value == "v");
}

}  // namespace
}  // namespace ddp::sdk
