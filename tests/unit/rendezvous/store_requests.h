// Requests for tests of the worker store: one of every kind, and lists that own their bytes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous::test {

// The bytes behind a StringList.
class OwnedList {
 public:
  OwnedList(std::initializer_list<std::string_view> strings) {
    for (const std::string_view string : strings) add(string);
  }
  void add(std::string_view string) {
    append_bytes(raw_, string);
    ++count_;
  }
  [[nodiscard]] StringList view() const { return {raw_, count_}; }

 private:
  std::string raw_;
  std::size_t count_ = 0;
};

inline std::string encoded(StoreDialect dialect, const StoreRequest& request) {
  std::string out;
  encode_request(out, dialect, request);
  return out;
}

inline StoreRequest set_request(std::string_view key, std::string_view value) {
  return {.code = StoreCode::set, .key = key, .value = value};
}
inline StoreRequest get_request(std::string_view key) {
  return {.code = StoreCode::get, .key = key};
}
inline StoreRequest add_request(std::string_view key, std::int64_t difference) {
  return {.code = StoreCode::add, .key = key, .number = difference};
}
inline StoreRequest delete_request(std::string_view key) {
  return {.code = StoreCode::delete_key, .key = key};
}
inline StoreRequest push_request(std::string_view queue, std::string_view value) {
  return {.code = StoreCode::queue_push, .key = queue, .value = value};
}
inline StoreRequest pop_request(std::string_view queue) {
  return {.code = StoreCode::queue_pop, .key = queue};
}
inline StoreRequest barrier_request(std::string_view key, std::int64_t world_size) {
  return {.code = StoreCode::barrier, .key = key, .number = world_size};
}
inline StoreRequest watch_request(std::string_view key) {
  return {.code = StoreCode::watch_key, .key = key};
}
inline StoreRequest list_request(StoreCode code, const OwnedList& list) {
  return {.code = code, .list = list.view()};
}
inline StoreRequest plain_request(StoreCode code) {
  return {.code = code};
}

}  // namespace ddp::rendezvous::test
