#include "worker_sdk/backends/shm/meet.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <ddp/error.hpp>

#include "worker_sdk/backends/shm/layout.h"

namespace ddp::sdk::shm {
namespace {

// How large the pieces are in which big arrays travel. Smaller ones stay, modified, in the writer's
// own cache, from where another core fetches them several times more slowly than from the shared
// one (measured: 1 MiB in one piece 46 µs, in 128 KiB pieces 176 µs). With many ranks the whole
// must stay small.
std::size_t chunk_for(int ranks) {
  constexpr std::size_t kChunk = 1U << 20;
  constexpr std::size_t kLeast = 64U << 10;
  std::size_t chunk = kChunk;
  while (chunk > kLeast && chunk * static_cast<std::size_t>(ranks) > (16U << 20)) chunk /= 2;
  return chunk;
}

Header& header_of(const Mapping& memory) {
  return *reinterpret_cast<Header*>(memory.data());
}

// What the lowest rank makes for all. The descriptors are closed when everybody has opened them.
struct Offer {
  UniqueFd memory_fd;
  UniqueFd page_fd;
  SharedMemoryRecord record;
};

SharedGroup make_group(const Place& place, std::shared_ptr<ControlPageView> agents_page,
                       Offer& offer) {
  const int ranks = static_cast<int>(place.peers.size());
  const Layout layout(ranks, chunk_for(ranks));
  offer.memory_fd = make_shared_memory("ddp-group", layout.size());
  SharedGroup group{Mapping(offer.memory_fd, layout.size()), std::move(agents_page)};
  const std::string token = make_token();
  Header& header = header_of(group.memory);
  header.version = kVersion;
  header.ranks = static_cast<std::uint32_t>(ranks);
  header.chunk = layout.chunk();
  header.size = layout.size();
  std::memcpy(header.token, token.c_str(), token.size() + 1);
  header.magic = kMagic;
  if (group.page == nullptr) {
    group.page = std::make_shared<ControlPageView>(
        ControlPageView::make(offer.page_fd, ranks, ranks, place.peers.front().rank));
  }
  offer.record = {number_in_proc(), offer.memory_fd.get(), layout.size(), token,
                  offer.page_fd.get()};
  return group;
}

SharedGroup join_group(const Place& place, std::shared_ptr<ControlPageView> agents_page,
                       const SharedMemoryRecord& record) {
  const int ranks = static_cast<int>(place.peers.size());
  if (record.fd < 0) throw Unavailable("the lowest rank of the host could not make shared memory");
  const UniqueFd fd = open_shared_memory_of(record.pid, record.fd, record.size);
  SharedGroup group{Mapping(fd, record.size), std::move(agents_page)};
  const Header& header = header_of(group.memory);
  if (header.magic != kMagic || header.version != kVersion ||
      record.token != std::string(header.token, ::strnlen(header.token, sizeof header.token)) ||
      header.ranks != static_cast<std::uint32_t>(ranks) || header.size != record.size ||
      Layout(ranks, header.chunk).size() != record.size) {
    throw Unavailable("what is mapped is not this group's shared memory");
  }
  if (group.page == nullptr) {
    group.page =
        std::make_shared<ControlPageView>(ControlPageView::open_of(record.pid, record.control_fd));
  }
  return group;
}

}  // namespace

std::optional<SharedGroup> meet(KeyValueClient& store, const std::string& prefix,
                                const Place& place,
                                const std::shared_ptr<ControlPageView>& agents_page,
                                Milliseconds timeout, std::string& why) {
  const Deadline deadline(timeout);
  const Peer& self = place.peers[static_cast<std::size_t>(place.position)];
  const std::string record_key = prefix + "shm/" + std::to_string(place.peers.front().rank);
  std::optional<SharedGroup> group;
  std::string reason;
  Offer offer;
  try {
    if (place.position == 0) group = make_group(place, agents_page, offer);
  } catch (const Unavailable& error) {
    reason = error.what();
  }
  if (place.position == 0) store.set(record_key, encode_record(offer.record));
  const SharedMemoryRecord record =
      place.position == 0 ? offer.record
                          : decode_record(store.get(record_key, deadline.remaining()));
  try {
    if (place.position != 0) group = join_group(place, agents_page, record);
  } catch (const Unavailable& error) {
    reason = error.what();
  }

  // The token makes an answer of an earlier attempt recognisable.
  store.set(prefix + "mapped/" + std::to_string(self.rank), record.token + reason);
  Keys keys;
  for (const Peer& peer : place.peers) {
    keys.push_back(prefix + "mapped/" + std::to_string(peer.rank));
  }
  const std::vector<std::string> answers = store.get_all(keys, deadline.remaining());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == record.token && !record.token.empty()) continue;
    const std::size_t token = std::min(record.token.size(), answers[i].size());
    why = "rank " + std::to_string(place.peers[i].rank) + " on " + place.peers[i].host +
          " cannot share memory: " + answers[i].substr(token);
    return std::nullopt;
  }
  return group;
}

}  // namespace ddp::sdk::shm
