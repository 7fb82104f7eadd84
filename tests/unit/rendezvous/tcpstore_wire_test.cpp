#include "rendezvous/core/tcpstore_wire.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/first_bytes.h"
#include "tests/unit/rendezvous/store_requests.h"

namespace ddp::rendezvous::test {
namespace {

std::string from_hex(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

std::vector<std::string> strings(const StringList& list) {
  std::vector<std::string> out;
  for (const std::string_view string : list) out.emplace_back(string);
  return out;
}

// One of every request that `dialect` has. The lists must outlive what is returned.
std::vector<StoreRequest> one_of_each(StoreDialect dialect, const OwnedList& keys,
                                      const OwnedList& pairs) {
  std::vector<StoreRequest> all{
      set_request("key", "value"),
      {.code = StoreCode::compare_set, .key = "k", .value = "expected", .desired = "desired"},
      get_request("key"),
      add_request("counter", -7),
      list_request(StoreCode::check, keys),
      list_request(StoreCode::wait, keys),
      plain_request(StoreCode::get_num_keys),
      delete_request("key")};
  if (dialect == StoreDialect::a) {
    all.insert(all.begin(), watch_request("watched"));
    return all;
  }
  const std::vector<StoreRequest> newer{{.code = StoreCode::append, .key = "k", .value = "more"},
                                        list_request(StoreCode::multi_get, keys),
                                        list_request(StoreCode::multi_set, pairs),
                                        plain_request(StoreCode::cancel_wait)};
  all.insert(all.end(), newer.begin(), newer.end());
  if (dialect == StoreDialect::b) return all;
  const std::vector<StoreRequest> newest{plain_request(StoreCode::validate),
                                         {.code = StoreCode::ping, .number = 0xDEADBEEF},
                                         push_request("queue", "value"),
                                         pop_request("queue"),
                                         {.code = StoreCode::queue_len, .key = "queue"},
                                         plain_request(StoreCode::list_keys),
                                         barrier_request("barrier", 512)};
  all.insert(all.end(), newest.begin(), newest.end());
  return all;
}

void check_same(const StoreRequest& got, const StoreRequest& want) {
  CHECK(got.code == want.code);
  CHECK(got.key == want.key);
  CHECK(got.value == want.value);
  CHECK(got.desired == want.desired);
  if (want.code != StoreCode::validate) CHECK(got.number == want.number);
  CHECK(strings(got.list) == strings(want.list));
}

constexpr StoreDialect kDialects[] = {StoreDialect::a, StoreDialect::b, StoreDialect::c};

DecodeState decode_once(StoreDialect dialect, std::string_view bytes, StoreLimits limits = {}) {
  StoreRequestDecoder decoder(dialect, limits);
  return decoder.decode(bytes);
}

TEST_CASE("wire: bytes of a PyTorch client of dialect C mean what PyTorch means") {
  StoreRequestDecoder decoder(StoreDialect::c, {});
  const std::string stream = from_hex("00 cef7853c") + from_hex("0d f23f0000") +
                             from_hex("04 0500000000000000 696e69742f 0100000000000000") +
                             from_hex("01 0300000000000000 2f6b31 0200000000000000 7631") +
                             from_hex("06 0100000000000000 0300000000000000 2f6b31") +
                             from_hex("03 0300000000000000 2f6b31") + from_hex("0c") +
                             from_hex("12 0400000000000000 2f626172 0100000000000000");
  const OwnedList waited{"/k1"};
  const StoreRequest want[] = {plain_request(StoreCode::validate),
                               {.code = StoreCode::ping, .number = 0x3FF2},
                               add_request("init/", 1),
                               set_request("/k1", "v1"),
                               list_request(StoreCode::wait, waited),
                               get_request("/k1"),
                               plain_request(StoreCode::cancel_wait),
                               barrier_request("/bar", 1)};
  std::string_view rest = stream;
  for (const StoreRequest& request : want) {
    REQUIRE(decoder.decode(rest) == DecodeState::complete);
    check_same(decoder.request(), request);
    rest.remove_prefix(decoder.size());
  }
  CHECK(rest.empty());
  CHECK(decoder.decode(rest) == DecodeState::need_more);
}

TEST_CASE("wire: bytes of a PyTorch client of dialect A mean what PyTorch means") {
  StoreRequestDecoder decoder(StoreDialect::a, {});
  const std::string add = from_hex("03 0500000000000000 696e69742f 0100000000000000");
  REQUIRE(decoder.decode(add) == DecodeState::complete);
  check_same(decoder.request(), add_request("init/", 1));
  const std::string wait = from_hex("05 0100000000000000 0200000000000000 2f77");
  REQUIRE(decoder.decode(wait) == DecodeState::complete);
  check_same(decoder.request(), list_request(StoreCode::wait, OwnedList{"/w"}));
}

TEST_CASE("wire: what is encoded is decoded again, in any pieces") {
  const OwnedList keys{"one", "", std::string_view{"\0bin\xFF", 5}};
  const OwnedList pairs{"k1", "v1", "", ""};
  for (const StoreDialect dialect : kDialects) {
    for (const StoreRequest& request : one_of_each(dialect, keys, pairs)) {
      const std::string bytes = encoded(dialect, request);
      StoreRequestDecoder decoder(dialect, {});
      for (std::size_t length = 0; length < bytes.size(); ++length) {
        // Each time from another place in memory.
        const std::string piece = bytes.substr(0, length);
        REQUIRE(decoder.decode(piece) == DecodeState::need_more);
      }
      const std::string followed = bytes + "more";
      REQUIRE(decoder.decode(followed) == DecodeState::complete);
      CHECK(decoder.size() == bytes.size());
      check_same(decoder.request(), request);
    }
  }
}

TEST_CASE("wire: the client's encoders write dialect C") {
  const std::vector<std::string_view> list{"a", "b"};
  const OwnedList owned{"a", "b"};
  const auto same = [](void (*encode)(std::string&, std::string_view, std::string_view),
                       StoreCode code) {
    std::string out;
    encode(out, "key", "value");
    return out == encoded(StoreDialect::c, {.code = code, .key = "key", .value = "value"});
  };
  CHECK(same(encode_set, StoreCode::set));
  CHECK(same(encode_append, StoreCode::append));
  const auto listed = [&](void (*encode)(std::string&, std::span<const std::string_view>),
                          StoreCode code) {
    std::string out;
    encode(out, list);
    return out == encoded(StoreDialect::c, list_request(code, owned));
  };
  CHECK(listed(encode_check, StoreCode::check));
  CHECK(listed(encode_wait, StoreCode::wait));
  CHECK(listed(encode_multi_get, StoreCode::multi_get));
  CHECK(listed(encode_multi_set, StoreCode::multi_set));
  std::string out;
  encode_validate(out);
  encode_ping(out, 0x3FF2);
  CHECK(out == from_hex("00 cef7853c 0d f23f0000"));
  out.clear();
  encode_compare_set(out, "k", "e", "d");
  encode_get(out, "k");
  encode_add(out, "k", -1);
  encode_delete_key(out, "k");
  encode_get_num_keys(out);
  encode_cancel_wait(out);
  CHECK(out == from_hex("02 0100000000000000 6b 0100000000000000 65 0100000000000000 64"
                        "03 0100000000000000 6b"
                        "04 0100000000000000 6b ffffffffffffffff"
                        "08 0100000000000000 6b 07 0c"));
}

TEST_CASE("wire: what a client reads back") {
  std::string reply;
  append_i64(reply, -2);
  CHECK(read_i64(reply) == -2);
  CHECK(read_u64(reply) == 0xFFFF'FFFF'FFFF'FFFE);
  reply.clear();
  append_bytes(reply, "v1");
  CHECK(reply == from_hex("0200000000000000 7631"));
}

TEST_CASE("wire: a key at the limit passes, one byte more is refused at its header") {
  StoreLimits limits;
  limits.key = 5;
  for (const StoreDialect dialect : kDialects) {
    CHECK(decode_once(dialect, encoded(dialect, get_request("12345")), limits) ==
          DecodeState::complete);
    const std::string header = encoded(dialect, get_request("123456")).substr(0, 9);
    CHECK(decode_once(dialect, header, limits) == DecodeState::malformed);
    CHECK(decode_once(dialect, header.substr(0, 8), limits) == DecodeState::need_more);
  }
}

TEST_CASE("wire: a value at the limit passes, one byte more is refused at its header") {
  StoreLimits limits;
  limits.value = 5;
  const std::string good = encoded(StoreDialect::c, set_request("k", "12345"));
  const std::string bad = encoded(StoreDialect::c, set_request("k", "123456"));
  CHECK(decode_once(StoreDialect::c, good, limits) == DecodeState::complete);
  CHECK(decode_once(StoreDialect::c, bad.substr(0, bad.size() - 6), limits) ==
        DecodeState::malformed);
  // In a MULTI_SET the second of each pair is a value, the first a key.
  limits.key = 1;
  const OwnedList pairs{"k", "12345"};
  CHECK(decode_once(StoreDialect::c,
                    encoded(StoreDialect::c, list_request(StoreCode::multi_set, pairs)),
                    limits) == DecodeState::complete);
}

TEST_CASE("wire: as many keys as the limit pass, one more is refused before any comes") {
  StoreLimits limits;
  limits.keys = 2;
  const auto with_count = [](StoreCode code, std::uint64_t count) {
    std::string bytes = encoded(StoreDialect::c, plain_request(code)).substr(0, 1);
    append_u64(bytes, count);
    return bytes;
  };
  for (const StoreCode code :
       {StoreCode::check, StoreCode::wait, StoreCode::multi_get, StoreCode::multi_set}) {
    CHECK(decode_once(StoreDialect::c, with_count(code, 2), limits) == DecodeState::need_more);
    CHECK(decode_once(StoreDialect::c, with_count(code, 3), limits) == DecodeState::malformed);
    CHECK(decode_once(StoreDialect::c, with_count(code, ~0ULL), limits) == DecodeState::malformed);
    CHECK(decode_once(StoreDialect::c, with_count(code, 1ULL << 63), limits) ==
          DecodeState::malformed);
  }
}

TEST_CASE("wire: a request as long as the limit passes, one byte more is refused") {
  const OwnedList keys{"abc", "def"};
  const std::string bytes = encoded(StoreDialect::c, list_request(StoreCode::wait, keys));
  StoreLimits limits;
  limits.request = bytes.size();
  CHECK(decode_once(StoreDialect::c, bytes, limits) == DecodeState::complete);
  limits.request = bytes.size() - 1;
  CHECK(decode_once(StoreDialect::c, bytes, limits) == DecodeState::malformed);
  // The end of a string is known from its header.
  CHECK(decode_once(StoreDialect::c, bytes.substr(0, bytes.size() - 3), limits) ==
        DecodeState::malformed);
  const std::string add = encoded(StoreDialect::c, add_request("k", 1));
  limits.request = add.size() - 1;
  CHECK(decode_once(StoreDialect::c, add, limits) == DecodeState::malformed);
}

TEST_CASE("wire: lengths that claim the whole address space are refused") {
  for (const StoreDialect dialect : kDialects) {
    for (const std::uint64_t length : {~0ULL, ~0ULL - 8, 1ULL << 63, 1ULL << 32}) {
      std::string bytes = encoded(dialect, get_request("")).substr(0, 1);
      append_u64(bytes, length);
      CHECK(decode_once(dialect, bytes) == DecodeState::malformed);
    }
  }
}

TEST_CASE("wire: a code that the dialect lacks is malformed") {
  for (int code = 0; code < 256; ++code) {
    const std::string byte(1, static_cast<char>(code));
    // What A lacks and B has makes it B.
    CHECK((decode_once(StoreDialect::a, byte) != DecodeState::malformed) == (code <= 11));
    CHECK((decode_once(StoreDialect::b, byte) != DecodeState::malformed) == (code <= 11));
    CHECK((decode_once(StoreDialect::c, byte) != DecodeState::malformed) == (code <= 18));
  }
}

// The codes of a stream of complete requests.
std::vector<StoreCode> codes_of(StoreRequestDecoder& decoder, std::string_view stream) {
  std::vector<StoreCode> codes;
  while (!stream.empty()) {
    REQUIRE(decoder.decode(stream) == DecodeState::complete);
    codes.push_back(decoder.request().code);
    stream.remove_prefix(decoder.size());
  }
  return codes;
}

TEST_CASE("wire: a legacy connection shows itself to be dialect B, and stays it") {
  const OwnedList keys{"k"};
  const std::string get = encoded(StoreDialect::b, get_request("k"));
  const std::string remove = encoded(StoreDialect::b, delete_request("k"));
  const std::string append =
      encoded(StoreDialect::b, {.code = StoreCode::append, .key = "k", .value = "v"});
  using Codes = std::vector<StoreCode>;
  for (const StoreRequest& shown :
       {list_request(StoreCode::multi_get, keys), plain_request(StoreCode::cancel_wait),
        plain_request(StoreCode::multi_set)}) {
    StoreRequestDecoder decoder(StoreDialect::a, {});
    CHECK(codes_of(decoder, encoded(StoreDialect::b, shown) + append + remove) ==
          Codes{shown.code, StoreCode::append, StoreCode::delete_key});
    CHECK(decoder.dialect() == StoreDialect::b);
  }
  StoreRequestDecoder later(StoreDialect::a, {});
  CHECK(codes_of(later, get + remove + append) ==
        Codes{StoreCode::get, StoreCode::delete_key, StoreCode::append});
  CHECK(later.dialect() == StoreDialect::b);
}

TEST_CASE("wire: code 7 alone is WATCH_KEY in dialect A, however often, and 8 DELETE_KEY") {
  const std::string watch = encoded(StoreDialect::a, watch_request("k"));
  const std::string remove = encoded(StoreDialect::a, delete_request("k"));
  StoreRequestDecoder decoder(StoreDialect::a, {});
  CHECK(codes_of(decoder, watch + watch + remove) ==
        std::vector{StoreCode::watch_key, StoreCode::watch_key, StoreCode::delete_key});
  CHECK(decoder.dialect() == StoreDialect::a);
}

TEST_CASE("wire: VALIDATE with another magic number is malformed") {
  CHECK(decode_once(StoreDialect::c, from_hex("00 cef7853c")) == DecodeState::complete);
  CHECK(decode_once(StoreDialect::c, from_hex("00 cef7853d")) == DecodeState::malformed);
}

TEST_CASE("first bytes: each protocol is told as soon as it can be") {
  struct Row {
    std::string bytes;
    Protocol protocol;
  };
  const Row rows[] = {{"", Protocol::undecided},
                      {from_hex("00"), Protocol::undecided},
                      {from_hex("00 cef785"), Protocol::undecided},
                      {from_hex("00 cef7853c"), Protocol::tcpstore_c},
                      {from_hex("00 cef7853c 0d"), Protocol::tcpstore_c},
                      {from_hex("00 0300"), Protocol::undecided},
                      {from_hex("00 03000000"), Protocol::tcpstore_legacy},
                      {from_hex("00 cef7853d"), Protocol::tcpstore_legacy},
                      {from_hex("03"), Protocol::tcpstore_legacy},
                      {from_hex("0b"), Protocol::tcpstore_legacy},
                      {from_hex("0c"), Protocol::unknown},
                      {"d", Protocol::undecided},
                      {"ddpagen", Protocol::undecided},
                      {"ddpagent", Protocol::agent},
                      {"ddpagent\x10", Protocol::agent},
                      {"ddpagenT", Protocol::unknown},
                      {"GET", Protocol::undecided},
                      {"GET /", Protocol::http},
                      {"GEt", Protocol::unknown},
                      {"POST /", Protocol::unknown},
                      {from_hex("16"), Protocol::undecided},
                      {from_hex("1603"), Protocol::tls},
                      {from_hex("1604"), Protocol::unknown},
                      {"\r\n", Protocol::unknown}};
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    CHECK(recognise_protocol(row.bytes) == row.protocol);
  }
}

}  // namespace
}  // namespace ddp::rendezvous::test
