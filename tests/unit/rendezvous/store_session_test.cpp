#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/key_value_store.h"
#include "rendezvous/io/listener.h"
#include "rendezvous/io/worker_store.h"
#include "tests/unit/rendezvous/store_requests.h"

namespace ddp::rendezvous::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr auto kDeadline = std::chrono::seconds(10);

// A store on the loop of this thread, which runs while a client waits for something.
struct Scene {
  explicit Scene(WorkerStoreOptions options = {}, bool takes_agents = false) {
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
class Client {
 public:
  explicit Client(Scene& scene, const std::string& address = "127.0.0.1")
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
  Scene& scene_;
  tcp::socket socket_;
};

TEST_CASE("session: both dialects share one map on one port") {
  Scene scene;
  Client c(scene);
  Client a(scene);
  c.greet();
  c.ask(set_request("k", "v"));
  CHECK(c.count_keys() == 1);
  a.ask(get_request("k"), StoreDialect::a);
  CHECK(a.receive_bytes() == "v");
  CHECK(scene.store->number_of_sessions() == 2);
}

TEST_CASE("session: requests sent together are answered together and in order") {
  Scene scene;
  Client client(scene);
  std::string stream = encoded(StoreDialect::c, plain_request(StoreCode::validate));
  const std::string add = encoded(StoreDialect::c, add_request("n", 1));
  for (int i = 0; i < 2000; ++i) stream += add;
  client.send(stream);
  for (int i = 1; i <= 2000; ++i) REQUIRE(client.receive_number() == i);
}

TEST_CASE("session: half a request blocks nobody and is completed later") {
  Scene scene;
  Client slow(scene);
  Client quick(scene);
  slow.greet();
  quick.greet();
  const std::string bytes = encoded(StoreDialect::c, set_request("slow", "0123456789"));
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    slow.send(bytes.substr(i, 1));
    CHECK(quick.count_keys() == 0);
  }
  slow.send(bytes.substr(bytes.size() - 1));
  CHECK(slow.count_keys() == 1);
}

TEST_CASE("session: a WAIT is answered when another client sets the key") {
  Scene scene;
  Client waiting(scene);
  Client setting(scene);
  waiting.greet();
  setting.greet();
  const OwnedList keys{"k"};
  waiting.ask(list_request(StoreCode::wait, keys));
  waiting.ask(add_request("arrived", 1));
  CHECK(waiting.receive_number() == 1);
  CHECK(waiting.silent());
  setting.ask(set_request("k", "v"));
  CHECK(waiting.receive(1) == std::string(1, '\0'));
}

TEST_CASE("session: a waiter that has left hurts nobody") {
  Scene scene;
  Client staying(scene);
  staying.greet();
  {
    Client leaving(scene);
    leaving.greet();
    const OwnedList keys{"k"};
    leaving.ask(list_request(StoreCode::wait, keys));
    CHECK(leaving.count_keys() == 0);
  }
  REQUIRE(scene.run_until([&] { return scene.store->number_of_sessions() == 1; }));
  staying.ask(set_request("k", "v"));
  CHECK(staying.count_keys() == 1);
}

TEST_CASE("session: a malformed request closes its own connection only") {
  Scene scene;
  Client good(scene);
  Client bad(scene);
  good.greet();
  bad.greet();
  bad.ask(set_request("k", "v"));
  bad.send("\xEE");
  CHECK(bad.closed());
  CHECK(good.count_keys() == 1);
}

TEST_CASE("session: replies to what came before a bad request are still sent") {
  Scene scene;
  Client client(scene);
  client.greet();
  client.send(encoded(StoreDialect::c, add_request("n", 5)) + "\xEE");
  CHECK(client.receive_number() == 5);
  CHECK(client.closed());
}

TEST_CASE("session: a client that doesn't read is not read from, and loses nothing") {
  Scene scene;
  Client lazy(scene);
  Client other(scene);
  lazy.greet();
  other.greet();
  const std::string value(1U << 20, 'x');
  lazy.ask(set_request("k", value));
  CHECK(lazy.count_keys() == 1);
  constexpr int kGets = 100;  // 100 MiB: more than the limit of unsent bytes
  std::string gets;
  for (int i = 0; i < kGets; ++i) gets += encoded(StoreDialect::c, get_request("k"));
  lazy.send(gets);
  CHECK(other.count_keys() == 1);
  for (int i = 0; i < kGets; ++i) REQUIRE(lazy.receive_bytes() == value);
  CHECK(lazy.count_keys() == 1);
}

TEST_CASE("session: a single reply over the limit of unsent bytes closes the connection") {
  WorkerStoreOptions options;
  options.limits.unsent = 16U << 20;
  Scene scene(options);
  Client client(scene);
  client.greet();
  client.ask(set_request("k", std::string(8U << 20, 'x')));
  const OwnedList over{"k", "k"};
  client.ask(list_request(StoreCode::multi_get, over));
  CHECK(client.closed());
}

TEST_CASE("session: bytes of unfinished requests count towards the total") {
  WorkerStoreOptions options;
  options.limits.total = 1U << 20;
  Scene scene(options);
  Client hoarder(scene);
  hoarder.greet();
  const std::string bytes = encoded(StoreDialect::c, set_request("k", std::string(2U << 20, 'x')));
  const std::string_view half = std::string_view(bytes).substr(0, (1U << 20) + 4096);
  std::size_t sent = 0;
  REQUIRE(scene.run_until([&] {  // closed before all of it is taken
    const ssize_t n = ::send(hoarder.socket().native_handle(), half.data() + sent,
                             half.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    return sent == half.size() || (n < 0 && errno != EAGAIN);
  }));
  CHECK(hoarder.closed());
  CHECK(scene.store->number_of_sessions() == 0);
}

TEST_CASE("listener: a connection that never speaks is left alone") {
  Scene scene;
  Client silent(scene);
  Client busy(scene);
  busy.greet();
  for (int i = 0; i < 100; ++i) CHECK(busy.count_keys() == 0);
  CHECK(scene.store->number_of_sessions() == 1);
  silent.greet();
  CHECK(silent.count_keys() == 0);
}

TEST_CASE("listener: other protocols are closed, agents too where nobody takes them") {
  Scene scene;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x16\x03\x01", 3), std::string("hello"),
        std::string("ddpagent")}) {
    Client client(scene);
    client.send(bytes);
    CHECK(client.closed());
  }
}

TEST_CASE("listener: an agent's connection goes to the owner with all that was read") {
  Scene scene({}, true);
  Client agent(scene);
  Client worker(scene);
  agent.send("ddpa");
  worker.greet();
  CHECK(worker.count_keys() == 0);
  agent.send("gent\x05");
  REQUIRE(scene.run_until([&] { return !scene.agents.empty(); }));
  CHECK(scene.agent_bytes.substr(0, 8) == "ddpagent");
  CHECK((::fcntl(scene.agents[0].native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
  int no_delay = 0;
  socklen_t length = sizeof no_delay;
  ::getsockopt(scene.agents[0].native_handle(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &length);
  CHECK(no_delay == 1);

  // A new round and even the end of the store leave it alone.
  scene.store->renew();
  CHECK(worker.closed());
  scene.store.reset();
  asio::write(scene.agents[0], asio::buffer("hi", 2));
  CHECK(agent.receive(2) == "hi");
}

TEST_CASE("worker store: a new round begins empty, on the same port, without the old clients") {
  Scene scene;
  Client old(scene);
  Client silent(scene);  // accepted in the old round, speaks in the new one
  old.greet();
  old.ask(set_request("k", "v"));
  CHECK(old.count_keys() == 1);
  const Endpoint before = scene.store->endpoint();
  scene.store->renew();
  CHECK(scene.store->endpoint() == before);
  CHECK(old.closed());
  silent.greet();
  CHECK(silent.closed());
  Client fresh(scene);
  fresh.greet();
  CHECK(fresh.count_keys() == 0);
}

TEST_CASE("worker store: a notice wakes a client that waits for it") {
  Scene scene;
  Client client(scene);
  client.greet();
  const OwnedList keys{kDeathNotice};
  client.ask(list_request(StoreCode::wait, keys));
  CHECK(client.count_keys() == 0);
  scene.store->set_notice(kDeathNotice, "{}");
  CHECK(client.receive(1) == std::string(1, '\0'));
  client.ask(get_request(kDeathNotice));
  CHECK(client.receive_bytes() == "{}");
}

TEST_CASE("worker store: it can go while clients are in the middle of something") {
  Scene scene;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(scene));
    if (i % 3 == 1) clients.back()->greet();
    if (i % 3 == 2) clients.back()->send(std::string_view{"\1\5", 2});
  }
  clients[1]->send(std::string_view{"\1", 1});
  Client last(scene);
  last.greet();
  last.count_keys();
  scene.store.reset();
  for (const auto& client : clients) CHECK(client->closed());
  CHECK(last.closed());
}

TEST_CASE("worker store: a port in use is reported with what to do") {
  Scene scene;
  WorkerStoreOptions options;
  options.port = scene.store->endpoint().port;
  const auto second = WorkerStore::open(scene.context, options);
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().message ==
        "cannot listen on 127.0.0.1:" + std::to_string(options.port.value) +
            ": address already in use; stop what listens there or choose another port (0: a free "
            "one)");
  options.address = "192.0.2.1";  // set aside for documentation: nobody has it
  options.port = Port{0};
  const auto elsewhere = WorkerStore::open(scene.context, options);
  REQUIRE_FALSE(elsewhere.ok());
  CHECK(elsewhere.error().message ==
        "cannot listen on 192.0.2.1:0: this host has no such address; give one of its own");
}

TEST_CASE("worker store: a name can be listened on") {
  if (!resolve_address("localhost").ok()) {
    WARN("skipped: this host does not know the name localhost (no /etc/hosts?)");
    return;
  }
  WorkerStoreOptions options;
  options.address = "localhost";
  Scene named(options);
  CHECK(named.store->endpoint().host == "localhost");
  Client client(named);
  client.greet();
  CHECK(client.count_keys() == 0);
}

TEST_CASE("worker store: IPv6 addresses can be listened on, :: takes IPv4 as well") {
  WorkerStoreOptions options;
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) {
    WARN("no IPv6 here");
    return;
  }
  ::close(probe);
  options.address = "::";
  Scene dual(options);
  for (const std::string address : {"127.0.0.1", "::1"}) {
    Client either(dual, address);
    either.greet();
    CHECK(either.count_keys() == 0);
  }
}

TEST_CASE("listener: running out of descriptors delays newcomers and ends nothing") {
  Scene scene;
  Client first(scene);
  Client late(scene);
  first.greet();
  CHECK(first.count_keys() == 0);
  Client later(scene);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3;  // below what is open: every accept fails
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  later.greet();
  for (int i = 0; i < 50; ++i) CHECK(first.count_keys() == 0);
  const std::clock_t used = std::clock();
  const auto end = Clock::now() + std::chrono::milliseconds(300);
  scene.context.restart();
  while (Clock::now() < end) scene.context.run_one_until(end);
  const double cpu = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(cpu < 0.2);  // a loop that spins would use all of the 0.3 s
  CHECK(later.count_keys() == 0);
  late.greet();
  CHECK(late.count_keys() == 0);
}

}  // namespace
}  // namespace ddp::rendezvous::test
