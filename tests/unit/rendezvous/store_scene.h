// A store for tests whose clients are numbers, and what it replies.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/key_value_store.h"
#include "tests/unit/rendezvous/store_requests.h"

namespace ddp::rendezvous::test {

inline std::string bytes_reply(std::string_view bytes) {
  std::string out;
  append_bytes(out, bytes);
  return out;
}

inline std::string number_reply(std::int64_t number) {
  std::string out;
  append_i64(out, number);
  return out;
}

inline const std::string kByte0(1, '\0');
inline const std::string kByte1(1, '\1');
inline const std::string kNothing;

// A store, and clients that are numbers.
struct StoreScene {
  explicit StoreScene(StoreLimits limits = {}) : store(limits) {}

  // The reply; what is woken is appended to `woken`.
  std::string ask(std::uint64_t session, const StoreRequest& request) {
    return ask(session, dialect, request);
  }
  std::string ask(std::uint64_t session, StoreDialect in, const StoreRequest& request) {
    StoreOutput out;
    REQUIRE(store.handle({{session}, in}, request, out) == SessionFate::keep);
    take(out);
    return out.reply;
  }
  // Asks for something that must close the connection, without a reply and without a wake-up.
  void refused(std::uint64_t session, const StoreRequest& request) {
    StoreOutput out;
    CHECK(store.handle({{session}, dialect}, request, out) == SessionFate::close);
    CHECK(out.reply.empty());
    CHECK(out.woken.empty());
    CHECK(out.news.empty());
  }
  void forget(std::uint64_t session) {
    StoreOutput out;
    store.forget({session}, out);
    CHECK(out.reply.empty());
    take(out);
  }
  void take(const StoreOutput& out) {
    for (const StoreSessionId id : out.woken) woken.push_back(id.value);
    for (const StoreNews& item : out.news) {
      for (const StoreSessionId id : item.to) news[id.value] += item.bytes;
    }
  }
  std::string wait(std::uint64_t session, const OwnedList& keys) {
    return ask(session, list_request(StoreCode::wait, keys));
  }
  std::vector<std::uint64_t> take_woken() { return std::exchange(woken, {}); }
  std::string take_news(std::uint64_t session) { return std::exchange(news[session], {}); }

  KeyValueStore store;
  StoreDialect dialect = StoreDialect::c;
  std::vector<std::uint64_t> woken;
  std::map<std::uint64_t, std::string> news;  // by session
};

using Ids = std::vector<std::uint64_t>;

inline StoreRequest compare_set(std::string_view key, std::string_view expected,
                                std::string_view desired) {
  return {.code = StoreCode::compare_set, .key = key, .value = expected, .desired = desired};
}

inline StoreRequest append(std::string_view key, std::string_view value) {
  return {.code = StoreCode::append, .key = key, .value = value};
}

}  // namespace ddp::rendezvous::test
