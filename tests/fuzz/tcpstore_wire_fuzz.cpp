// Feeds bytes to the decoder and what it understands to a store: the first byte chooses the dialect
// (odd: C, else below 128: A, else B) and the size of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/core/first_bytes.h"
#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/result.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {
namespace {

StoreLimits small_limits() {
  StoreLimits limits;
  limits.key = 64;
  limits.value = 256;
  limits.keys = 16;
  limits.request = 1024;
  limits.unsent = 4096;
  limits.total = 16384;
  return limits;
}

// Reads in pieces and all at once; both must come to the same requests and the same state.
void feed(StoreDialect dialect, std::string_view stream, std::size_t piece) {
  const StoreLimits limits = small_limits();
  KeyValueStore store(limits);
  StoreRequestDecoder pieces(dialect, limits);
  StoreRequestDecoder whole(dialect, limits);
  std::string buffer;
  std::size_t begin = 0;
  std::size_t arrived = 0;
  std::uint64_t session = 0;
  while (arrived < stream.size()) {
    const std::size_t length = std::min(piece, stream.size() - arrived);
    buffer.append(stream.substr(arrived, length));
    arrived += length;
    DecodeState state = pieces.decode(buffer);
    for (; state == DecodeState::complete; state = pieces.decode(buffer)) {
      DDP_ASSERT(whole.decode(stream.substr(begin)) == DecodeState::complete);
      DDP_ASSERT(whole.size() == pieces.size() && pieces.size() <= limits.request);
      std::string again;
      encode_request(again, pieces.dialect(), pieces.request());
      DDP_ASSERT(again == stream.substr(begin, pieces.size()));
      StoreOutput out;
      const SessionFate fate = store.handle({{session}, pieces.dialect()}, pieces.request(), out);
      if (fate == SessionFate::close) store.forget({session++}, out);
      DDP_ASSERT(store.bytes() <= limits.total);
      DDP_ASSERT(out.reply.size() <= limits.unsent);
      begin += pieces.size();
      buffer.erase(0, pieces.size());
    }
    if (state == DecodeState::malformed) {
      DDP_ASSERT(whole.decode(stream.substr(begin)) == DecodeState::malformed);
      return;
    }
    DDP_ASSERT(buffer.size() <= limits.request);
  }
}

}  // namespace
}  // namespace ddp::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ddp::rendezvous::StoreDialect;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)ddp::rendezvous::recognise_protocol(bytes);
  if (size < 2) return 0;
  const auto legacy = data[0] < 128 ? StoreDialect::a : StoreDialect::b;
  const auto dialect = data[0] % 2 == 0 ? legacy : StoreDialect::c;
  ddp::rendezvous::feed(dialect, bytes.substr(1), 1 + data[0] % 128U / 2);
  return 0;
}
