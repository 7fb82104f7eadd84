#include "rendezvous/core/key_value_store.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/rendezvous/store_requests.h"
#include "tests/unit/rendezvous/store_scene.h"

namespace ddp::rendezvous::test {
namespace {

using Scene = StoreScene;

TEST_CASE("store: what was set is got, byte for byte") {
  Scene scene;
  CHECK(scene.ask(1, set_request("/k", "v1")) == kNothing);
  CHECK(scene.ask(2, get_request("/k")) == bytes_reply("v1"));
  const std::string_view binary{"\0\xFF\n", 3};
  CHECK(scene.ask(1, set_request("/k", binary)) == kNothing);
  CHECK(scene.ask(2, get_request("/k")) == bytes_reply(binary));
  CHECK(scene.ask(1, set_request("", "")) == kNothing);
  CHECK(scene.ask(2, get_request("")) == bytes_reply(""));
}

TEST_CASE("store: GET of an absent key closes in the legacy dialects and is empty in C") {
  Scene scene;
  scene.ask(1, set_request("k", "v"));
  const OwnedList keys{"k", "absent"};
  CHECK(scene.ask(1, get_request("absent")) == bytes_reply(""));
  CHECK(scene.ask(1, list_request(StoreCode::multi_get, keys)) ==
        bytes_reply("v") + bytes_reply(""));
  for (const StoreDialect legacy : {StoreDialect::a, StoreDialect::b}) {
    scene.dialect = legacy;
    scene.refused(2, get_request("absent"));
    scene.refused(2, list_request(StoreCode::multi_get, keys));
  }
}

TEST_CASE("store: ADD keeps decimal text and answers with the sum") {
  Scene scene;
  CHECK(scene.ask(1, add_request("n", 5)) == number_reply(5));
  CHECK(scene.ask(1, get_request("n")) == bytes_reply("5"));
  CHECK(scene.ask(1, add_request("n", -7)) == number_reply(-2));
  CHECK(scene.ask(1, get_request("n")) == bytes_reply("-2"));
  CHECK(scene.ask(1, add_request("zero", 0)) == number_reply(0));
  CHECK(scene.ask(1, get_request("zero")) == bytes_reply("0"));
}

TEST_CASE("store: ADD reads text as stoll does") {
  struct Row {
    std::string_view text;
    std::int64_t sum;  // after ADD 1
  };
  const Row rows[] = {{"41", 42},
                      {"  +12abc", 13},
                      {"\t\n\v\f\r -3", -2},
                      {{"7\0zzz", 5}, 8},
                      {"007", 8},
                      {"9223372036854775806", INT64_MAX},
                      {"9223372036854775807", INT64_MIN},  // the sum wraps
                      {"-9223372036854775808", INT64_MIN + 1}};
  for (const Row& row : rows) {
    Scene scene;
    scene.ask(1, set_request("n", row.text));
    CAPTURE(row.text);
    CHECK(scene.ask(1, add_request("n", 1)) == number_reply(row.sum));
  }
}

TEST_CASE("store: ADD to what is no number closes, and changes nothing") {
  for (const std::string_view text :
       {std::string_view{""}, std::string_view{"hello"}, std::string_view{"+-5"},
        std::string_view{"- 5"}, std::string_view{"+"}, std::string_view{"   "},
        std::string_view{"9223372036854775808"}, std::string_view{"\0 1", 3}}) {
    Scene scene;
    scene.ask(1, set_request("n", text));
    CAPTURE(text);
    scene.refused(1, add_request("n", 1));
    CHECK(scene.ask(2, get_request("n")) == bytes_reply(text));
  }
}

TEST_CASE("store: COMPARE_SET stores on equality and says what is there") {
  Scene scene;
  CHECK(scene.ask(1, compare_set("k", "other", "new")) == bytes_reply("other"));
  CHECK(scene.ask(1, list_request(StoreCode::check, {"k"})) == kByte1);
  CHECK(scene.ask(1, compare_set("k", "", "first")) == bytes_reply("first"));
  CHECK(scene.ask(1, compare_set("k", "wrong", "second")) == bytes_reply("first"));
  CHECK(scene.ask(1, compare_set("k", "first", "second")) == bytes_reply("second"));
  CHECK(scene.ask(1, compare_set("k", "", "third")) == bytes_reply("second"));
  scene.ask(1, set_request("empty", ""));
  CHECK(scene.ask(1, compare_set("empty", "", "x")) == bytes_reply("x"));
}

TEST_CASE("store: CHECK is ready when all keys are there, also when there are none") {
  Scene scene;
  scene.ask(1, set_request("a", "1"));
  CHECK(scene.ask(1, list_request(StoreCode::check, {"a"})) == kByte0);
  CHECK(scene.ask(1, list_request(StoreCode::check, {"a", "b"})) == kByte1);
  CHECK(scene.ask(1, list_request(StoreCode::check, {})) == kByte0);
}

TEST_CASE("store: DELETE_KEY says whether there was one; GETNUMKEYS counts what is left") {
  Scene scene;
  const auto count = plain_request(StoreCode::get_num_keys);
  scene.ask(1, set_request("a", "1"));
  scene.ask(1, set_request("a", "2"));
  scene.ask(1, add_request("b", 1));
  CHECK(scene.ask(1, count) == number_reply(2));
  CHECK(scene.ask(1, delete_request("a")) == number_reply(1));
  CHECK(scene.ask(1, delete_request("a")) == number_reply(0));
  CHECK(scene.ask(1, count) == number_reply(1));
  scene.wait(2, {"waited for is not there"});
  CHECK(scene.ask(1, count) == number_reply(1));
  CHECK(scene.ask(1, delete_request("waited for is not there")) == number_reply(0));
}

TEST_CASE("store: APPEND, MULTI_SET, MULTI_GET and PING of dialect C") {
  Scene scene;
  CHECK(scene.ask(1, append("k", "po")) == kNothing);
  CHECK(scene.ask(1, append("k", "tato")) == kNothing);
  CHECK(scene.ask(1, get_request("k")) == bytes_reply("potato"));
  CHECK(scene.ask(1, list_request(StoreCode::multi_set, {"a", "1", "b", "2", "a", "3"})) ==
        kNothing);
  CHECK(scene.ask(1, list_request(StoreCode::multi_get, {"b", "a", "none", "b"})) ==
        bytes_reply("2") + bytes_reply("3") + bytes_reply("") + bytes_reply("2"));
  CHECK(scene.ask(1, {.code = StoreCode::ping, .number = 0x01020304}) == "\x04\x03\x02\x01");
  CHECK(scene.ask(1, plain_request(StoreCode::validate)) == kNothing);
}

TEST_CASE("store: WAIT answers at once when nothing is missing") {
  Scene scene;
  scene.ask(1, set_request("a", ""));
  CHECK(scene.wait(2, {"a"}) == kByte0);
  CHECK(scene.wait(2, {}) == kByte0);
  CHECK(scene.take_woken().empty());
}

TEST_CASE("store: every way of setting a key wakes who waits for it, once") {
  const OwnedList pairs{"k", "v"};
  const StoreRequest writes[] = {set_request("k", "v"), add_request("k", 0), append("k", "v"),
                                 compare_set("k", "", "v"),
                                 list_request(StoreCode::multi_set, pairs)};
  for (const StoreRequest& write : writes) {
    Scene scene;
    CHECK(scene.wait(7, {"k"}) == kNothing);
    scene.ask(1, write);
    CHECK(scene.take_woken() == Ids{7});
    scene.ask(1, set_request("k", "again"));
    CHECK(scene.take_woken().empty());
  }
}

TEST_CASE("store: a COMPARE_SET that stores nothing and a DELETE wake nobody") {
  Scene scene;
  scene.wait(7, {"k"});
  scene.ask(1, compare_set("k", "expected", "v"));
  scene.ask(1, delete_request("k"));
  CHECK(scene.take_woken().empty());
}

TEST_CASE("store: a WAIT for several keys ends with the last of them") {
  Scene scene;
  scene.ask(1, set_request("a", "1"));
  CHECK(scene.wait(7, {"a", "b", "c"}) == kNothing);
  scene.ask(1, set_request("c", "1"));
  CHECK(scene.take_woken().empty());
  scene.ask(1, set_request("b", "1"));
  CHECK(scene.take_woken() == Ids{7});
}

TEST_CASE("store: a key that is deleted again still counts for a WAIT that had seen it") {
  Scene scene;
  scene.wait(7, {"a", "b"});
  scene.ask(1, set_request("a", "1"));
  scene.ask(1, delete_request("a"));
  scene.ask(1, set_request("b", "1"));
  CHECK(scene.take_woken() == Ids{7});
}

TEST_CASE("store: the same key named twice in a WAIT gives one wake-up") {
  Scene scene;
  scene.wait(7, {"a", "a"});
  scene.ask(1, set_request("a", "1"));
  CHECK(scene.take_woken() == Ids{7});
}

TEST_CASE("store: waiters are woken in the order in which they came") {
  Scene scene;
  for (const std::uint64_t session : {5, 3, 9, 1}) scene.wait(session, {"k"});
  scene.forget(9);
  scene.ask(2, set_request("k", "v"));
  CHECK(scene.take_woken() == Ids{5, 3, 1});
}

TEST_CASE("store: a session that wakes itself finds the byte among its own replies") {
  Scene scene;
  scene.wait(1, {"k"});
  CHECK(scene.ask(1, add_request("k", 4)) == kByte0 + number_reply(4));
  CHECK(scene.take_woken().empty());
}

TEST_CASE("store: CANCEL_WAIT ends a WAIT and is answered also when there is none") {
  Scene scene;
  scene.wait(7, {"k"});
  CHECK(scene.ask(7, plain_request(StoreCode::cancel_wait)) == kByte1);
  scene.ask(1, set_request("k", "v"));
  CHECK(scene.take_woken().empty());
  CHECK(scene.ask(7, plain_request(StoreCode::cancel_wait)) == kByte1);
}

TEST_CASE("store: a second WAIT takes the place of the first") {
  Scene scene;
  scene.wait(7, {"first"});
  scene.wait(7, {"second"});
  scene.ask(1, set_request("first", ""));
  CHECK(scene.take_woken().empty());
  scene.ask(1, set_request("second", ""));
  CHECK(scene.take_woken() == Ids{7});
}

TEST_CASE("store: in the legacy dialects any new request ends a pending WAIT in silence") {
  for (const StoreDialect legacy : {StoreDialect::a, StoreDialect::b}) {
    Scene scene;
    scene.dialect = legacy;
    scene.wait(7, {"k"});
    CHECK(scene.ask(7, add_request("n", 3)) == number_reply(3));
    scene.ask(1, set_request("k", "v"));
    CHECK(scene.take_woken().empty());
  }
}

TEST_CASE("store: in dialect C a request beside a pending WAIT leaves it alone") {
  Scene scene;
  scene.wait(7, {"k"});
  CHECK(scene.ask(7, add_request("n", 3)) == number_reply(3));
  scene.ask(1, set_request("k", "v"));
  CHECK(scene.take_woken() == Ids{7});
}

TEST_CASE("store: who has left is not woken, and leaves nothing behind but its keys") {
  Scene scene;
  scene.ask(7, set_request("mine", "v"));
  const std::size_t before = scene.store.bytes();
  scene.wait(7, {"a", "b", "a"});
  CHECK(scene.store.bytes() > before);
  scene.forget(7);
  scene.forget(7);
  CHECK(scene.store.bytes() == before);
  scene.ask(1, set_request("a", "v"));
  CHECK(scene.take_woken().empty());
  CHECK(scene.ask(1, get_request("mine")) == bytes_reply("v"));
}

TEST_CASE("store: notices are found, not counted, and closed to writers") {
  const std::string key{kDeathNotice};
  Scene scene;
  scene.wait(7, {key});
  StoreOutput out;
  scene.store.set_notice(key, "rank 1 died", out);
  REQUIRE(out.woken.size() == 1);
  CHECK(out.woken[0] == StoreSessionId{7});
  CHECK(scene.ask(1, get_request(key)) == bytes_reply("rank 1 died"));
  CHECK(scene.ask(1, list_request(StoreCode::check, {key})) == kByte0);
  CHECK(scene.wait(1, {key}) == kByte0);
  CHECK(scene.ask(1, list_request(StoreCode::multi_get, {key})) == bytes_reply("rank 1 died"));
  CHECK(scene.ask(1, plain_request(StoreCode::get_num_keys)) == number_reply(0));
  const OwnedList pairs{"innocent", "v", key, "v"};
  for (const StoreRequest& write :
       {set_request(key, "v"), add_request(key, 1), append(key, "v"), compare_set(key, "", "v"),
        delete_request(key), list_request(StoreCode::multi_set, pairs), push_request(key, "v"),
        pop_request(key), barrier_request(key, 1)}) {
    scene.refused(2, write);
  }
  CHECK(scene.ask(1, plain_request(StoreCode::list_keys)) == number_reply(0));
  CHECK(scene.ask(1, {.code = StoreCode::queue_len, .key = key}) == number_reply(0));
  CHECK(scene.ask(1, get_request(key)) == bytes_reply("rank 1 died"));
  CHECK(scene.ask(1, list_request(StoreCode::check, {"innocent"})) == kByte1);
}

TEST_CASE("store: the last byte of the total is usable, one more is refused") {
  StoreLimits limits;
  limits.total = KeyValueStore::kEntryCost + 10;
  const std::string_view nine = "123456789";
  const OwnedList fits{"k", nine};
  const OwnedList too_much{"k", "1234567890"};
  const auto writes = [&](std::string_view value, const OwnedList& pairs) {
    return std::vector<StoreRequest>{set_request("k", value), append("k", value),
                                     compare_set("k", "", value),
                                     list_request(StoreCode::multi_set, pairs)};
  };
  for (const StoreRequest& write : writes(nine, fits)) {
    Scene scene(limits);
    scene.ask(1, write);
    CHECK(scene.store.bytes() == limits.total);
    scene.refused(1, append("k", "x"));
    scene.refused(1, set_request("another", ""));
    scene.refused(1, list_request(StoreCode::wait, {"another"}));
    scene.ask(1, set_request("k", "987654321"));  // takes the place of its like
    CHECK(scene.ask(1, delete_request("k")) == number_reply(1));
    CHECK(scene.store.bytes() == 0);
  }
  for (const StoreRequest& write : writes("1234567890", too_much)) {
    Scene scene(limits);
    scene.refused(1, write);
    CHECK(scene.store.bytes() == 0);
  }
  limits.total = KeyValueStore::kEntryCost + 1;
  Scene scene(limits);
  scene.ask(1, set_request("n", ""));
  scene.refused(1, add_request("m", 1));
}

TEST_CASE("store: a value costs what it keeps of memory, and keeps little that it doesn't use") {
  Scene scene;
  const auto cost = [&] { return scene.store.bytes() - KeyValueStore::kEntryCost - 1; };
  scene.ask(1, set_request("k", std::string(8000, 'a')));
  CHECK(cost() == 8000);
  scene.ask(1, set_request("k", std::string(4001, 'b')));
  CHECK(cost() == 4001);
  scene.ask(1, append("k", "c"));
  CHECK(cost() > 4002);  // room for what is appended next
  CHECK(scene.ask(1, get_request("k")) == bytes_reply(std::string(4001, 'b') + "c"));
  scene.ask(1, set_request("k", std::string(4002, 'd')));
  CHECK(cost() == 4002);
  scene.ask(1, set_request("k", "short"));
  CHECK(cost() == 5);
  scene.ask(1, delete_request("k"));
  CHECK(scene.store.bytes() == 0);
}

TEST_CASE("store: an APPEND is refused only where its bytes have no room") {
  StoreLimits limits;
  limits.total = KeyValueStore::kEntryCost + 1 + 110;
  Scene scene(limits);
  scene.ask(1, set_request("k", std::string(100, 'x')));
  scene.ask(1, append("k", "0123456789"));
  CHECK(scene.store.bytes() == limits.total);
  scene.refused(1, append("k", "0"));
  CHECK(scene.store.bytes() == limits.total);
}

TEST_CASE("store: a number is looked for in the first 64 bytes only") {
  Scene scene;
  const std::string blanks(63, ' ');
  scene.ask(1, set_request("k", blanks.substr(1) + "7 and more"));
  CHECK(scene.ask(1, add_request("k", 1)) == number_reply(8));
  // It may be a longer one.
  scene.ask(1, set_request("k", blanks + "77"));
  scene.refused(1, add_request("k", 1));
  scene.ask(1, set_request("k", blanks + " 7"));
  scene.refused(1, add_request("k", 1));
  scene.ask(1, set_request("k", std::string(70, '0') + "7"));
  scene.refused(1, add_request("k", 1));
}

TEST_CASE("store: waiting counts towards the total") {
  StoreLimits limits;
  limits.total = StoreWaits::kNameCost + StoreWaits::kWaitCost + 1;
  Scene scene(limits);
  CHECK(scene.wait(1, {"k"}) == kNothing);
  CHECK(scene.store.bytes() == limits.total);
  scene.refused(2, list_request(StoreCode::wait, {"j"}));
  scene.forget(1);
  scene.refused(2, list_request(StoreCode::wait, {"kk"}));
}

TEST_CASE("store: what sessions hold in buffers counts towards the total") {
  StoreLimits limits;
  limits.total = 1000;
  KeyValueStore store(limits);
  CHECK(store.charge(1000));
  CHECK_FALSE(store.charge(1));
  CHECK_FALSE(store.charge(~std::size_t{0}));
  store.release(1000);
  CHECK(store.bytes() == 0);
}

TEST_CASE("store: APPEND can't make a value longer than the limit") {
  StoreLimits limits;
  limits.value = 4;
  Scene scene(limits);
  scene.ask(1, append("k", "123"));
  scene.refused(1, append("k", "45"));
  scene.ask(1, append("k", "4"));
  CHECK(scene.ask(1, get_request("k")) == bytes_reply("1234"));
}

TEST_CASE("store: MULTI_GET of more than a client may have unsent closes") {
  StoreLimits limits;
  limits.unsent = 2 * (8 + 4);
  Scene scene(limits);
  scene.ask(1, set_request("k", "1234"));
  CHECK(scene.ask(1, list_request(StoreCode::multi_get, {"k", "k"})).size() == limits.unsent);
  scene.refused(1, list_request(StoreCode::multi_get, {"k", "k", "none"}));
}

TEST_CASE("store: a MULTI_SET that doesn't fit is not applied in part") {
  StoreLimits limits;
  limits.total = 2 * KeyValueStore::kEntryCost;
  Scene scene(limits);
  scene.refused(1, list_request(StoreCode::multi_set, {"a", "1", "b", "2"}));
  CHECK(scene.ask(1, plain_request(StoreCode::get_num_keys)) == number_reply(0));
}

}  // namespace
}  // namespace ddp::rendezvous::test
