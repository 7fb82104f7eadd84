// Whole sessions, as the input scripts them: connections come, send pieces of anything, and go;
// whatever they do, the store's books stay right, and nothing is left when all have gone.
//
// Input: one byte (odd: legacy clients are taken for dialect B), then again and again a byte that
// says who (its lowest three bits) and what (29: leaves; 30: the agent sets a notice; else: sends),
// and, but for who leaves, a length and so many bytes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  limits.total = 8192;
  return limits;
}

class World {
 public:
  explicit World(StoreDialect legacy) : legacy_(legacy), store_(limits_) {}

  void send(std::size_t place, std::string_view bytes) {
    Client& client = clients_[place];
    if (!client.id) client.id = StoreSessionId{next_id_++};
    client.pending.append(bytes);
    if (!client.decoder) {
      const Protocol protocol = recognise_protocol(client.pending);
      if (protocol == Protocol::undecided) return;
      const bool legacy = protocol == Protocol::tcpstore_legacy;
      if (!legacy && protocol != Protocol::tcpstore_c) return leave(place);
      client.decoder.emplace(legacy ? legacy_ : StoreDialect::c, limits_);
    }
    while (client.id) {
      const DecodeState state = client.decoder->decode(client.pending);
      if (state == DecodeState::need_more) return;
      if (state == DecodeState::malformed || !carry_out(client)) return leave(place);
      client.pending.erase(0, client.decoder->size());
    }
  }

  void leave(std::size_t place) {
    Client& client = clients_[place];
    if (!client.id) return;
    StoreOutput out;
    store_.forget(*client.id, out);
    waiting_.erase(client.id->value);
    DDP_ASSERT(out.reply.empty() && out.news.empty() && out.woken.size() <= 1);
    check_woken(out);
    client = Client{};
  }

  void notice(std::string_view text) {
    StoreOutput out;
    store_.set_notice(kDeathNotice, text, out);
    DDP_ASSERT(out.reply.empty());
    check_woken(out);
    noticed_ = true;
  }

  // Nothing may be left but what the requests have stored, and that can be taken back.
  void end() {
    for (std::size_t place = 0; place < clients_.size(); ++place) leave(place);
    const KeyValueStore::Asker asker{{next_id_}, StoreDialect::c};
    StoreOutput list;
    DDP_ASSERT(store_.handle(asker, {.code = StoreCode::list_keys}, list) == SessionFate::keep);
    const std::string_view reply = list.reply;
    const StringList keys(reply.substr(8), read_u64(reply));
    DDP_ASSERT(keys.size() == store_.number_of_keys());
    for (const std::string_view key : keys) {
      StoreOutput out;
      const StoreRequest request{.code = StoreCode::delete_key, .key = key};
      DDP_ASSERT(store_.handle(asker, request, out) == SessionFate::keep);
      DDP_ASSERT(read_i64(out.reply) == 1);
    }
    for (const std::string& queue : queues_) {
      StoreOutput out;
      do {
        out = {};
        const StoreRequest request{.code = StoreCode::queue_pop, .key = queue};
        DDP_ASSERT(store_.handle(asker, request, out) == SessionFate::keep);
      } while (read_i64(out.reply) > 0);
    }
    DDP_ASSERT(store_.number_of_keys() == 0);
    if (!noticed_) DDP_ASSERT(store_.bytes() == 0);
  }

 private:
  struct Client {
    std::optional<StoreSessionId> id;
    std::optional<StoreRequestDecoder> decoder;
    std::string pending;
  };

  bool carry_out(Client& client) {
    const StoreRequest& request = client.decoder->request();
    const std::size_t before = store_.bytes();
    StoreOutput out;
    const SessionFate fate = store_.handle({*client.id, client.decoder->dialect()}, request, out);
    check_woken(out);
    DDP_ASSERT(std::count(out.woken.begin(), out.woken.end(), *client.id) == 0);
    // Notices are the agent's, and asked nobody for room.
    if (!noticed_) DDP_ASSERT(store_.bytes() <= limits_.total);
    DDP_ASSERT(store_.bytes() <= limits_.total || store_.bytes() <= before);
    if (fate == SessionFate::close) return false;  // also who pushes to a notice's key
    if (request.code == StoreCode::queue_push) queues_.emplace(request.key);
    const bool waits = out.reply.empty() &&
                       (request.code == StoreCode::wait || request.code == StoreCode::barrier);
    if (waits) waiting_.insert(client.id->value);
    // A new wait has taken the place of the old one; dialect C may do other things meanwhile.
    const bool ends = request.code == StoreCode::cancel_wait || request.code == StoreCode::wait ||
                      request.code == StoreCode::barrier ||
                      client.decoder->dialect() != StoreDialect::c;
    if (!waits && ends) waiting_.erase(client.id->value);
    return true;
  }

  void check_woken(const StoreOutput& out) {
    std::set<std::uint64_t> seen;
    for (const StoreSessionId id : out.woken) {
      DDP_ASSERT(seen.insert(id.value).second);
      DDP_ASSERT(waiting_.erase(id.value) == 1);  // nobody is woken who doesn't wait
    }
    for (const StoreNews& news : out.news) DDP_ASSERT(!news.to.empty() && !news.bytes.empty());
  }

  StoreLimits limits_ = small_limits();
  StoreDialect legacy_;
  KeyValueStore store_;
  std::array<Client, 8> clients_;
  std::uint64_t next_id_ = 0;
  std::set<std::uint64_t> waiting_;
  std::set<std::string> queues_;
  bool noticed_ = false;
};

// Takes the input apart.
class Script {
 public:
  explicit Script(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool over() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (over()) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  std::string_view take(std::size_t length) {
    const std::string_view piece = bytes_.substr(0, length);
    bytes_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view bytes_;
};

void play(Script script) {
  World world(script.byte() % 2 == 0 ? StoreDialect::a : StoreDialect::b);
  while (!script.over()) {
    const std::uint8_t record = script.byte();
    const std::size_t place = record % 8U;
    switch (record / 8) {
      case 29:
        world.leave(place);
        break;
      case 30:
        world.notice(script.take(script.byte()));
        break;
      default:
        world.send(place, script.take(script.byte()));
        break;
    }
  }
  world.end();
}

}  // namespace
}  // namespace ddp::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ddp::rendezvous::play(ddp::rendezvous::Script(bytes));
  return 0;
}
