#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/key_value_store.h"
#include "rendezvous/io/listener.h"
#include "rendezvous/io/worker_store.h"
#include "tests/unit/rendezvous/store_requests.h"
#include "tests/unit/rendezvous/store_server_scene.h"

namespace ddp::rendezvous::test {
namespace {

using Client = RawClient;
using Scene = ServerScene;

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
  const std::string holder = "in use by pid " + std::to_string(::getpid()) + " (unit_rendezvous)";
  CHECK(second.error().message ==
        "cannot listen on 127.0.0.1:" + std::to_string(options.port.value) + ": " + holder +
            "; stop what listens there or choose another port (0: a free one)");
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

// Lets the store run for that long; how much CPU time the process used meanwhile.
std::chrono::duration<double> run_for(Scene& scene, std::chrono::milliseconds time) {
  const std::clock_t used = std::clock();
  const auto end = Clock::now() + time;
  scene.context.restart();
  while (Clock::now() < end) scene.context.run_one_until(end);
  return std::chrono::duration<double>(static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
}

// While it lives, nothing can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = 3;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("listener: running out of descriptors delays newcomers and ends no client in use") {
  Scene scene;
  Client first(scene);
  first.greet();
  CHECK(first.count_keys() == 0);
  Client late(scene);
  int answers = 0;
  std::chrono::milliseconds used{};
  std::size_t sessions = 0;
  {
    const NoDescriptors none;  // not even for what checks the checks
    late.greet();
    for (int i = 0; i < 50; ++i) answers += first.count_keys() == 0 ? 1 : 0;
    used = std::chrono::duration_cast<std::chrono::milliseconds>(
        run_for(scene, std::chrono::milliseconds(300)));
    sessions = scene.store->number_of_sessions();
  }
  CHECK(answers == 50);
  CHECK(used < std::chrono::milliseconds(200));  // a loop that spins would use all of the time
  CHECK(sessions == 1);
  CHECK(late.count_keys() == 0);
  CHECK(first.count_keys() == 0);
}

WorkerStoreOptions with_room_for(std::size_t connections) {
  WorkerStoreOptions options;
  options.connections = connections;
  return options;
}

TEST_CASE("listener: for want of room the oldest connection that never spoke is closed") {
  Scene scene(with_room_for(3));
  Client in_use(scene);
  in_use.greet();
  CHECK(in_use.count_keys() == 0);
  Client oldest(scene);
  run_for(scene, std::chrono::milliseconds(20));
  Client younger(scene);
  Client newcomer(scene);
  newcomer.greet();
  CHECK(newcomer.count_keys() == 0);
  CHECK(oldest.closed());
  CHECK(in_use.count_keys() == 0);
  younger.greet();
  CHECK(younger.count_keys() == 0);
}

TEST_CASE("listener: the silent second connection of a legacy client stays as long as the first") {
  Scene scene(with_room_for(3));
  auto first = std::make_unique<Client>(scene);
  first->ask(add_request("n", 1), StoreDialect::a);
  CHECK(first->receive_number() == 1);
  Client second(scene);
  Client scanner(scene);
  Client newcomer(scene);
  newcomer.greet();
  CHECK(newcomer.count_keys() == 1);
  CHECK(scanner.closed());
  first->ask(add_request("n", 1), StoreDialect::a);
  CHECK(first->receive_number() == 2);
  first.reset();
  REQUIRE(scene.run_until([&] { return scene.store->number_of_sessions() == 1; }));
  Client another(scene);
  another.greet();
  CHECK(another.count_keys() == 1);
  CHECK(second.silent());
  second.ask(watch_request("n"), StoreDialect::a);
  CHECK(second.receive(1) == "\3");
}

TEST_CASE("listener: then half a greeting is closed, then one that has only greeted") {
  Scene scene(with_room_for(3));
  Client greeted(scene);
  greeted.greet();
  Client half(scene);
  half.send(std::string_view{"\0\xCE", 2});
  Client legacy(scene);
  legacy.send("\3");  // the code of an ADD, and no more
  REQUIRE(scene.run_until([&] { return scene.store->number_of_sessions() == 2; }));
  std::vector<std::unique_ptr<Client>> newcomers;
  for (Client* closed : {&half, &greeted, &legacy}) {
    newcomers.push_back(std::make_unique<Client>(scene));
    newcomers.back()->greet();
    CHECK(newcomers.back()->count_keys() == 0);
    CHECK(closed->closed());
  }
  for (const auto& newcomer : newcomers) CHECK(newcomer->count_keys() == 0);
}

TEST_CASE("listener: where all are in use a newcomer waits until one leaves") {
  Scene scene(with_room_for(2));
  auto leaving = std::make_unique<Client>(scene);
  Client staying(scene);
  for (Client* client : {leaving.get(), &staying}) {
    client->greet();
    CHECK(client->count_keys() == 0);
  }
  Client newcomer(scene);
  newcomer.greet();
  newcomer.ask(plain_request(StoreCode::get_num_keys));
  CHECK(run_for(scene, std::chrono::milliseconds(300)) < std::chrono::milliseconds(200));
  CHECK(newcomer.silent());
  CHECK(leaving->count_keys() == 0);
  leaving.reset();
  CHECK(newcomer.receive_number() == 0);
  CHECK(staying.count_keys() == 0);
}

TEST_CASE("listener: who finds no room for long is turned away, and that is said once") {
  WorkerStoreOptions options = with_room_for(1);
  std::vector<std::string> said;
  options.on_warning = [&](const std::string& text) { said.push_back(text); };
  Scene scene(options);
  Client in_use(scene);
  in_use.greet();
  CHECK(in_use.count_keys() == 0);
  {
    Client newcomer(scene);
    newcomer.greet();
    CHECK(newcomer.closed());
  }
  const auto before = Clock::now();
  Client another(scene);
  CHECK(another.closed());
  CHECK(Clock::now() - before > std::chrono::seconds(4));  // each has the time that the first had
  CHECK(in_use.count_keys() == 0);
  REQUIRE(said.size() == 1);
  CHECK(said[0] == "no room for more connections at " + text_of(scene.store->endpoint()) +
                       " (1 in use); clients are turned away until some leave; raise the limit of "
                       "open files (ulimit -n)");
}

TEST_CASE("listener: a burst above the room's size is served in turn, and nobody is closed") {
  Scene scene(with_room_for(8));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Client>(scene));
    clients.back()->greet();
    clients.back()->ask(plain_request(StoreCode::get_num_keys));
  }
  for (auto& client : clients) {
    CHECK(client->receive_number() == 0);
    client.reset();
  }
}

TEST_CASE("listener: the room left by the limit of open files is at least a quarter of it") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const std::size_t files = limit.rlim_cur;
  CHECK(connections_within_limit_of_files(0) == files);
  CHECK(connections_within_limit_of_files(10) == files - 10);
  CHECK(connections_within_limit_of_files(files) == files / 4);
  CHECK(connections_within_limit_of_files(2 * files) == files / 4);
}

TEST_CASE("listener: an IPv4 address in the clothes of IPv6 is that address") {
  const auto address = resolve_address("::ffff:127.0.0.1");
  REQUIRE(address.ok());
  CHECK(address.value().is_loopback());
  CHECK(address.value().to_string() == "127.0.0.1");
}

}  // namespace
}  // namespace ddp::rendezvous::test
