#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {
namespace {

// What came out of a stream: the requests, encoded again, and how it ended.
struct Reading {
  std::vector<std::string> requests;
  DecodeState end = DecodeState::need_more;
  friend bool operator==(const Reading&, const Reading&) = default;
};

void showValue(const Reading& reading, std::ostream& out) {
  out << reading.requests.size() << " requests, state " << static_cast<int>(reading.end);
}

// Small, so that short streams meet them.
StoreLimits small_limits() {
  StoreLimits limits;
  limits.key = 6;
  limits.value = 12;
  limits.keys = 4;
  limits.request = 80;
  return limits;
}

// As a session does it: pieces are gathered until a request is complete.
Reading read_in_pieces(StoreDialect dialect, std::string_view stream,
                       const std::vector<std::size_t>& lengths) {
  StoreRequestDecoder decoder(dialect, small_limits());
  Reading reading;
  std::string buffer;
  std::size_t next = 0;
  while (!stream.empty()) {
    const std::size_t length = lengths.empty() ? stream.size() : lengths[next++ % lengths.size()];
    buffer = std::string(buffer).append(stream.substr(0, length));  // moves at each piece
    stream.remove_prefix(std::min(length, stream.size()));
    while ((reading.end = decoder.decode(buffer)) == DecodeState::complete) {
      encode_request(reading.requests.emplace_back(), decoder.dialect(), decoder.request());
      buffer.erase(0, decoder.size());
    }
    if (reading.end == DecodeState::malformed) break;
  }
  return reading;
}

rc::Gen<std::vector<std::size_t>> piece_lengths() {
  return rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 12)));
}

std::string some_string(std::size_t limit) {
  const auto length = *rc::gen::inRange<std::size_t>(0, limit + 1);
  return *rc::gen::container<std::string>(length, rc::gen::arbitrary<char>());
}

std::vector<StoreCode> codes_of(StoreDialect dialect) {
  const auto range = [](StoreCode first, StoreCode last) {
    std::vector<StoreCode> codes;
    for (int code = static_cast<int>(first); code <= static_cast<int>(last); ++code) {
      codes.push_back(static_cast<StoreCode>(code));
    }
    return codes;
  };
  // No WATCH_KEY: behind another request it reads as B's DELETE_KEY.
  if (dialect == StoreDialect::a) return range(StoreCode::set, StoreCode::delete_key);
  if (dialect == StoreDialect::b) return range(StoreCode::set, StoreCode::cancel_wait);
  return range(StoreCode::validate, StoreCode::barrier);
}

// A request of the dialect within the limits, as bytes.
std::string some_request(StoreDialect dialect) {
  const StoreLimits limits = small_limits();
  const std::string key = some_string(limits.key);
  const std::string value = some_string(limits.value);
  const std::string desired = some_string(limits.value);
  StoreRequest request;
  request.code = *rc::gen::elementOf(codes_of(dialect));
  const std::size_t count = *rc::gen::inRange<std::size_t>(0, 3);
  const bool pairs = request.code == StoreCode::multi_set;
  std::string raw;
  for (std::size_t i = 0; i < (pairs ? 2 * count : count); ++i) {
    append_bytes(raw, some_string(limits.key));
  }
  request.key = key;
  request.value = value;
  request.desired = desired;
  request.number = *rc::gen::arbitrary<std::int32_t>();
  request.list = {raw, pairs ? 2 * count : count};
  std::string bytes;
  encode_request(bytes, dialect, request);
  return bytes;
}

StoreDialect some_dialect() {
  return *rc::gen::element(StoreDialect::a, StoreDialect::b, StoreDialect::c);
}

TEST_CASE("wire property: good requests come out as they went in, in whatever pieces") {
  rc::prop("round trip", [] {
    const StoreDialect dialect = some_dialect();
    const auto count = *rc::gen::inRange(0, 8);
    Reading want;
    std::string stream;
    for (int i = 0; i < count; ++i) stream += want.requests.emplace_back(some_request(dialect));
    RC_ASSERT(read_in_pieces(dialect, stream, *piece_lengths()) == want);
  });
}

TEST_CASE("wire property: damaged streams read the same in whatever pieces") {
  rc::prop("chunking", [] {
    const StoreDialect dialect = some_dialect();
    std::string stream;
    const auto count = *rc::gen::inRange(1, 6);
    for (int i = 0; i < count; ++i) stream += some_request(dialect);
    const auto damages = *rc::gen::inRange(0, 4);
    for (int i = 0; i < damages; ++i) {
      stream[*rc::gen::inRange<std::size_t>(0, stream.size())] = *rc::gen::arbitrary<char>();
    }
    RC_ASSERT(read_in_pieces(dialect, stream, *piece_lengths()) ==
              read_in_pieces(dialect, stream, {}));
  });
}

TEST_CASE("wire property: any bytes at all read the same in whatever pieces") {
  rc::prop("total", [](const std::string& stream) {
    for (const StoreDialect dialect : {StoreDialect::a, StoreDialect::b, StoreDialect::c}) {
      RC_ASSERT(read_in_pieces(dialect, stream, *piece_lengths()) ==
                read_in_pieces(dialect, stream, {}));
    }
  });
}

}  // namespace
}  // namespace ddp::rendezvous
