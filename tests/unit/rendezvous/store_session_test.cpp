#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/io/worker_store.h"
#include "tests/unit/rendezvous/store_requests.h"
#include "tests/unit/rendezvous/store_server_scene.h"

namespace ddp::rendezvous::test {
namespace {

using Client = RawClient;
using Scene = ServerScene;

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

TEST_CASE("session: many short requests that make much work leave others their turn") {
  Scene scene;
  std::vector<std::unique_ptr<Client>> watching;
  for (int i = 0; i < 50; ++i) {
    watching.push_back(std::make_unique<Client>(scene));
    watching.back()->ask(watch_request("n"), StoreDialect::a);
    CHECK(watching.back()->receive(1) == "\3");
  }
  Client busy(scene);
  Client other(scene);
  for (Client* client : {&busy, &other}) {
    client->greet();
    CHECK(client->count_keys() == 0);
  }
  constexpr int kAdds = 2000;
  std::string adds;
  for (int i = 0; i < kAdds; ++i) adds += encoded(StoreDialect::c, add_request("n", 1));
  busy.send(adds);
  other.ask(add_request("n", 0));
  const std::int64_t done = other.receive_number();
  CHECK(done > 0);
  CHECK(done < kAdds / 2);
  for (int i = 1; i <= kAdds; ++i) REQUIRE(busy.receive_number() == i);
}

TEST_CASE("session: memory that a buffer keeps for a short rest counts towards the total") {
  WorkerStoreOptions options;
  options.limits.total = 16U << 20;
  Scene scene(options);
  const std::string value(4U << 20, 'x');
  std::string bytes = encoded(StoreDialect::c, plain_request(StoreCode::validate));
  bytes += encoded(StoreDialect::c, set_request("k", value));
  bytes += encoded(StoreDialect::c, plain_request(StoreCode::get_num_keys));
  bytes += '\1';  // the code of a SET, and no more
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 10; ++i) {  // 40 MiB and more, if each kept what it needed once
    clients.push_back(std::make_unique<Client>(scene));
    clients.back()->send(bytes);
    CHECK(clients.back()->receive_number() == 1);
  }
  Client other(scene);
  other.greet();
  CHECK(other.count_keys() == 1);
  CHECK(scene.store->number_of_sessions() == 11);
}

}  // namespace
}  // namespace ddp::rendezvous::test
