// Queues, barriers, watched keys and the list of keys: what the store does beside plain values.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/key_value_store.h"
#include "tests/unit/rendezvous/store_requests.h"
#include "tests/unit/rendezvous/store_scene.h"

namespace ddp::rendezvous::test {
namespace {

using Scene = StoreScene;

std::string popped(std::int64_t length, std::string_view value) {
  return number_reply(length) + bytes_reply(value);
}

StoreRequest queue_len(std::string_view queue) {
  return {.code = StoreCode::queue_len, .key = queue};
}

std::string list_reply(std::initializer_list<std::string_view> keys) {
  std::string reply = number_reply(static_cast<std::int64_t>(keys.size()));
  for (const std::string_view key : keys) reply += bytes_reply(key);
  return reply;
}

std::string event(KeyEvent event, std::string_view key, std::string_view before,
                  std::string_view after) {
  return std::string(1, static_cast<char>(event)) + bytes_reply(key) + bytes_reply(before) +
         bytes_reply(after);
}

// ---- queues

TEST_CASE("queue: values come out in their order, with the length before the pop") {
  Scene scene;
  CHECK(scene.ask(1, pop_request("q")) == number_reply(0));
  CHECK(scene.ask(1, push_request("q", "1")) == kNothing);
  CHECK(scene.ask(2, push_request("q", "")) == kNothing);
  CHECK(scene.ask(1, queue_len("q")) == number_reply(2));
  CHECK(scene.ask(1, pop_request("q")) == popped(2, "1"));
  CHECK(scene.ask(2, pop_request("q")) == popped(1, ""));
  CHECK(scene.ask(2, pop_request("q")) == number_reply(0));
  CHECK(scene.ask(1, queue_len("q")) == number_reply(0));
  CHECK(scene.store.bytes() == 0);
}

TEST_CASE("queue: is no key, but CHECK and WAIT find it as long as it holds something") {
  Scene scene;
  scene.ask(1, push_request("q", "1"));
  CHECK(scene.ask(1, plain_request(StoreCode::get_num_keys)) == number_reply(0));
  CHECK(scene.ask(1, plain_request(StoreCode::list_keys)) == list_reply({}));
  CHECK(scene.ask(1, get_request("q")) == bytes_reply(""));
  CHECK(scene.ask(1, delete_request("q")) == number_reply(0));
  CHECK(scene.ask(1, list_request(StoreCode::check, {"q"})) == kByte0);
  CHECK(scene.wait(2, {"q"}) == kByte0);
  scene.ask(1, set_request("q", "a key of that name"));
  CHECK(scene.ask(1, pop_request("q")) == popped(1, "1"));
  CHECK(scene.ask(1, list_request(StoreCode::check, {"q"})) == kByte0);
  scene.ask(1, delete_request("q"));
  CHECK(scene.ask(1, list_request(StoreCode::check, {"q"})) == kByte1);
}

TEST_CASE("queue: each push wakes one waiter, first come, first served") {
  Scene scene;
  for (const std::uint64_t session : {5, 3, 9}) scene.wait(session, {"q"});
  for (const std::uint64_t session : {5, 3, 9}) {
    scene.ask(1, push_request("q", "v"));
    CHECK(scene.take_woken() == Ids{session});
  }
  scene.ask(1, push_request("q", "v"));
  CHECK(scene.take_woken().empty());
}

TEST_CASE("queue: who has been woken waits for nothing any more") {
  Scene scene;
  scene.wait(5, {"q"});
  scene.ask(1, push_request("q", "v"));
  scene.take_woken();
  scene.ask(1, set_request("q", "v"));
  scene.ask(1, push_request("q", "v"));
  CHECK(scene.take_woken().empty());
}

TEST_CASE("queue: a WAIT for a queue that holds something and a key waits for the key alone") {
  Scene scene;
  scene.ask(1, push_request("q", "v"));
  CHECK(scene.wait(5, {"q", "k"}) == kNothing);
  scene.ask(1, set_request("k", ""));
  CHECK(scene.take_woken() == Ids{5});
}

TEST_CASE("queue: a push that doesn't end the wait of the first goes on to the next") {
  Scene scene;
  scene.wait(5, {"q", "k"});
  scene.wait(6, {"q"});
  scene.ask(1, push_request("q", "v"));
  CHECK(scene.take_woken() == Ids{6});
  scene.ask(1, set_request("k", ""));  // the push has counted
  CHECK(scene.take_woken() == Ids{5});
}

TEST_CASE("queue: the same queue named twice is met by one push") {
  Scene scene;
  scene.wait(5, {"q", "q"});
  scene.wait(6, {"q"});
  scene.ask(1, push_request("q", "v"));
  CHECK(scene.take_woken() == Ids{5});
}

TEST_CASE("queue: SET of a key of that name wakes all who wait") {
  Scene scene;
  scene.wait(5, {"q"});
  scene.wait(6, {"q"});
  scene.ask(1, set_request("q", ""));
  CHECK(scene.take_woken() == Ids{5, 6});
}

TEST_CASE("queue: if the one who was woken doesn't fetch the value, the next is woken") {
  // It leaves; it gives up in the same moment; it does something else.
  for (const auto& [leaves, request] :
       {std::pair{true, StoreRequest{}}, std::pair{false, plain_request(StoreCode::cancel_wait)},
        std::pair{false, pop_request("another")}, std::pair{false, get_request("k")}}) {
    Scene scene;
    scene.wait(5, {"q"});
    scene.wait(6, {"q"});
    scene.wait(7, {"q"});
    scene.ask(1, push_request("q", "v"));
    CHECK(scene.take_woken() == Ids{5});
    leaves ? scene.forget(5) : void(scene.ask(5, request));
    CHECK(scene.take_woken() == Ids{6});
    CHECK(scene.ask(6, pop_request("q")) == popped(1, "v"));
    scene.forget(6);
    CHECK(scene.take_woken().empty());
  }
}

TEST_CASE("queue: nobody is woken for a value that somebody else has fetched meanwhile") {
  Scene scene;
  scene.wait(5, {"q"});
  scene.wait(6, {"q"});
  scene.ask(1, push_request("q", "v"));
  CHECK(scene.ask(2, pop_request("q")) == popped(1, "v"));
  scene.take_woken();
  scene.forget(5);
  CHECK(scene.take_woken().empty());
}

TEST_CASE("queue: the last byte of the total is usable, and waiting leaves nothing behind") {
  StoreLimits limits;
  limits.total = StoreQueues::kQueueCost + StoreQueues::kValueCost + 6;
  Scene scene(limits);
  scene.ask(1, push_request("q", "12345"));
  CHECK(scene.store.bytes() == limits.total);
  scene.refused(1, push_request("q", ""));
  scene.refused(1, push_request("r", ""));
  CHECK(scene.ask(1, pop_request("q")) == popped(1, "12345"));
  scene.refused(1, push_request("q", "123456"));
  CHECK(scene.store.bytes() == 0);

  Scene other;
  other.wait(5, {"q", "k"});
  other.ask(1, push_request("q", ""));
  other.ask(1, pop_request("q"));
  other.wait(6, {"q"});
  other.ask(1, push_request("q", ""));
  other.ask(1, pop_request("q"));
  other.forget(5);
  other.forget(6);
  CHECK(other.store.bytes() == 0);
}

// ---- barriers

TEST_CASE("barrier: lets all go when the last has come, and whoever comes later") {
  Scene scene;
  CHECK(scene.ask(1, barrier_request("b", 3)) == kNothing);
  CHECK(scene.ask(2, barrier_request("b", 3)) == kNothing);
  CHECK(scene.ask(9, get_request("b")) == bytes_reply("2"));
  CHECK(scene.ask(3, barrier_request("b", 3)) == kByte0);
  CHECK(scene.take_woken() == Ids{1, 2});
  CHECK(scene.ask(1, barrier_request("b", 3)) == kByte0);
  CHECK(scene.ask(9, get_request("b")) == bytes_reply("4"));
  CHECK(scene.take_woken().empty());
}

TEST_CASE("barrier: who gives up or leaves stays counted") {
  Scene scene;
  scene.ask(1, barrier_request("b", 3));
  CHECK(scene.ask(1, plain_request(StoreCode::cancel_wait)) == kByte1);
  scene.ask(2, barrier_request("b", 3));
  scene.forget(2);
  CHECK(scene.ask(3, barrier_request("b", 3)) == kByte0);
  CHECK(scene.take_woken().empty());
}

TEST_CASE("barrier: each waits for its own number, whoever makes the key reach it") {
  Scene scene;
  scene.ask(1, barrier_request("b", 5));
  scene.ask(2, barrier_request("b", 4));
  CHECK(scene.ask(3, barrier_request("b", 3)) == kByte0);
  CHECK(scene.take_woken().empty());
  scene.ask(9, set_request("b", "no number"));
  scene.ask(9, set_request("b", "3"));
  CHECK(scene.take_woken().empty());
  CHECK(scene.ask(9, add_request("b", 1)) == number_reply(4));
  CHECK(scene.take_woken() == Ids{2});
  scene.ask(9, set_request("b", "77"));
  CHECK(scene.take_woken() == Ids{1});
}

TEST_CASE("barrier: its key is one like any other") {
  Scene scene;
  scene.wait(7, {"b"});
  scene.ask(1, barrier_request("b", 2));
  CHECK(scene.take_woken() == Ids{7});
  CHECK(scene.ask(9, plain_request(StoreCode::get_num_keys)) == number_reply(1));
  CHECK(scene.ask(9, delete_request("b")) == number_reply(1));  // begins again, 1 still waits
  CHECK(scene.ask(2, barrier_request("b", 2)) == kNothing);
  CHECK(scene.ask(3, barrier_request("b", 2)) == kByte0);
  CHECK(scene.take_woken() == Ids{1, 2});
}

TEST_CASE("barrier: of one or of nobody passes at once; on what is no number it closes") {
  Scene scene;
  CHECK(scene.ask(1, barrier_request("one", 1)) == kByte0);
  CHECK(scene.ask(1, barrier_request("none", 0)) == kByte0);
  CHECK(scene.ask(1, barrier_request("less", INT64_MIN)) == kByte0);
  scene.ask(1, set_request("b", "text"));
  scene.refused(2, barrier_request("b", 1));
  CHECK(scene.ask(1, get_request("b")) == bytes_reply("text"));
}

TEST_CASE("barrier: takes the place of a WAIT of the same session, and the other way round") {
  Scene scene;
  scene.wait(1, {"k"});
  CHECK(scene.ask(1, barrier_request("b", 2)) == kNothing);
  scene.ask(9, set_request("k", ""));
  CHECK(scene.take_woken().empty());
  scene.wait(1, {"j"});
  CHECK(scene.ask(2, barrier_request("b", 2)) == kByte0);
  CHECK(scene.take_woken().empty());
  // Its own arrival doesn't end its own WAIT for that key: that is over before.
  scene.wait(3, {"c"});
  CHECK(scene.ask(3, barrier_request("c", 2)) == kNothing);
  CHECK(scene.take_woken().empty());
}

TEST_CASE("barrier: waiting in it counts towards the total") {
  StoreLimits limits;
  limits.total = KeyValueStore::kEntryCost + 2 + StoreWaits::kNameCost + 1 + StoreWaits::kWaitCost;
  Scene scene(limits);
  CHECK(scene.ask(1, barrier_request("b", 2)) == kNothing);
  CHECK(scene.store.bytes() == limits.total);
  scene.forget(1);
  scene.ask(1, delete_request("b"));
  CHECK(scene.store.bytes() == 0);
  scene.refused(1, barrier_request("bb", 2));
}

// ---- the list of keys

TEST_CASE("keys: the list holds each key once, whatever was deleted in between") {
  Scene scene;
  const StoreRequest list = plain_request(StoreCode::list_keys);
  CHECK(scene.ask(1, list) == list_reply({}));
  for (const std::string_view key : {"a", "", "c", "d"}) scene.ask(1, set_request(key, "v"));
  scene.ask(1, set_request("a", "again"));
  scene.wait(2, {"only waited for"});
  CHECK(scene.ask(1, list) == list_reply({"a", "", "c", "d"}));
  scene.ask(1, delete_request(""));
  CHECK(scene.ask(1, list) == list_reply({"a", "d", "c"}));
  scene.ask(1, delete_request("c"));
  scene.ask(1, delete_request("a"));
  CHECK(scene.ask(1, list) == list_reply({"d"}));
  scene.ask(1, delete_request("d"));
  CHECK(scene.ask(1, list) == list_reply({}));
}

TEST_CASE("keys: a list longer than a client may have unsent closes") {
  StoreLimits limits;
  limits.unsent = 8 + 8 + 3;
  Scene scene(limits);
  scene.ask(1, set_request("abc", ""));
  CHECK(scene.ask(1, plain_request(StoreCode::list_keys)).size() == limits.unsent);
  scene.ask(1, delete_request("abc"));
  scene.ask(1, set_request("abcd", ""));
  scene.refused(1, plain_request(StoreCode::list_keys));
}

// ---- watched keys

TEST_CASE("watch: every change is told, with the value before and after") {
  Scene scene;
  CHECK(scene.ask(7, StoreDialect::a, watch_request("k")) == "\3");
  scene.ask(1, set_request("k", "one"));
  CHECK(scene.take_news(7) == event(KeyEvent::created, "k", "", "one"));
  scene.ask(1, set_request("k", "2"));
  CHECK(scene.take_news(7) == event(KeyEvent::updated, "k", "one", "2"));
  scene.ask(1, add_request("k", 1));
  CHECK(scene.take_news(7) == event(KeyEvent::updated, "k", "2", "3"));
  scene.ask(1, append("k", "!"));
  CHECK(scene.take_news(7) == event(KeyEvent::updated, "k", "3", "3!"));
  scene.ask(1, compare_set("k", "3!", "x"));
  CHECK(scene.take_news(7) == event(KeyEvent::updated, "k", "3!", "x"));
  scene.ask(1, list_request(StoreCode::multi_set, {"other", "", "k", "4"}));
  CHECK(scene.take_news(7) == event(KeyEvent::updated, "k", "x", "4"));
  scene.ask(1, barrier_request("k", 1));
  CHECK(scene.take_news(7) == event(KeyEvent::updated, "k", "4", "5"));
  scene.ask(1, delete_request("k"));
  CHECK(scene.take_news(7) == event(KeyEvent::deleted, "k", "5", ""));
  scene.ask(1, delete_request("k"));
  scene.ask(1, compare_set("k", "expected", "v"));
  scene.ask(1, push_request("k", "in a queue"));
  CHECK(scene.take_news(7).empty());
}

TEST_CASE("watch: all who watch are told, also who changes it, each once") {
  Scene scene;
  for (const std::uint64_t session : {7, 8, 7, 9}) scene.ask(session, watch_request("k"));
  scene.forget(8);
  const std::string news = event(KeyEvent::created, "k", "", "1");
  CHECK(scene.ask(9, add_request("k", 1)) == news + number_reply(1));
  CHECK(scene.take_news(7) == news);
  CHECK(scene.take_news(8).empty());
}

TEST_CASE("watch: an APPEND of nothing is no change") {
  Scene scene;
  scene.ask(7, watch_request("k"));
  scene.ask(1, append("k", ""));
  CHECK(scene.take_news(7) == event(KeyEvent::created, "k", "", ""));
  scene.ask(1, append("k", ""));
  CHECK(scene.take_news(7).empty());
}

TEST_CASE("watch: a change is refused where there is no room for its news") {
  const std::string value(1000, 'x');
  StoreLimits limits;
  limits.total = StoreWatches::kWatchCost + KeyValueStore::kEntryCost + 2000;
  const OwnedList pairs{"k", value};
  const bool watched = GENERATE(true, false);
  for (const StoreRequest& write :
       {set_request("k", value), append("k", value), compare_set("k", "", value),
        list_request(StoreCode::multi_set, pairs)}) {
    Scene scene(limits);
    CHECK(scene.ask(7, watch_request(watched ? "k" : "another")) == "\3");
    if (watched) {
      scene.refused(1, write);
    } else {
      scene.ask(1, write);
    }
    CHECK(scene.take_news(7).empty());
    CHECK(scene.store.number_of_keys() == (watched ? 0 : 1));
  }
}

TEST_CASE("watch: costs nothing when whoever watches has left") {
  StoreLimits limits;
  limits.total = StoreWatches::kWatchCost + 2;
  Scene scene(limits);
  CHECK(scene.ask(7, watch_request("k")) == "\3");
  CHECK(scene.ask(7, watch_request("k")) == "\3");
  CHECK(scene.store.bytes() == limits.total);
  scene.refused(8, watch_request("k"));
  scene.forget(7);
  CHECK(scene.store.bytes() == 0);
  scene.refused(8, watch_request("kk"));
}

TEST_CASE("watch: a notice is told like any other key") {
  Scene scene;
  scene.ask(7, watch_request(kDeathNotice));
  StoreOutput out;
  scene.store.set_notice(kDeathNotice, "rank 1 died", out);
  scene.take(out);
  CHECK(scene.take_news(7) == event(KeyEvent::created, kDeathNotice, "", "rank 1 died"));
}

}  // namespace
}  // namespace ddp::rendezvous::test
