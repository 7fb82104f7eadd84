// Which connection is closed when there is no room for another: the oldest of those that have
// shown least.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

// Numbers are given in the order of arrival.
using ConnectionId = Strong<struct ConnectionTag, std::uint64_t>;

// How far a connection has come. One that is in use is no newcomer any more, and is never closed
// for another.
enum class Arrival : std::uint8_t {
  silent,     // has never sent a byte: a scanner, or a companion that isn't known as one
  undecided,  // has sent something that doesn't say yet what it speaks
  greeted,    // speaks our protocol, but hasn't asked for anything
};

// The address that a connection comes from, IPv4 as IPv6.
struct PeerAddress {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const PeerAddress&, const PeerAddress&) = default;
};

// A client of dialect A opens a second connection behind the first, on which it says nothing, and
// spins if that is closed. So for each of its kind in use one silent connection of the same address
// that came later is taken for its companion, and left alone as if it were in use, too.
class Newcomers {
 public:
  // A connection is left alone for so long after it has come, or has come further: its bytes may
  // be on their way.
  explicit Newcomers(Duration grace) : grace_(grace) {}

  void enter(ConnectionId connection, const PeerAddress& from, Instant now);  // silent
  void advance(ConnectionId connection, Arrival arrival, Instant now);
  void put_in_use(ConnectionId connection, bool has_companion);
  void leave(ConnectionId connection);  // closed; unknown ones are ignored

  [[nodiscard]] std::optional<ConnectionId> to_close(Instant now) const;

 private:
  struct Newcomer {
    PeerAddress from;
    Instant since;
  };
  using Stage = std::map<ConnectionId, Newcomer>;
  // Clients with companions at one address; these are never more.
  struct Company {
    std::size_t clients = 0;
    std::set<ConnectionId> companions;
  };

  [[nodiscard]] Stage& stage(Arrival arrival) { return stages_[static_cast<std::size_t>(arrival)]; }
  std::optional<Newcomer> take_out(ConnectionId connection);
  void adopt(Stage::iterator silent, Company& company);

  Duration grace_;
  std::array<Stage, 3> stages_;  // by Arrival
  Stage companions_;
  std::map<PeerAddress, Company> companies_;
  std::unordered_map<std::uint64_t, PeerAddress> clients_;  // that have companions, by connection
};

}  // namespace ddp::rendezvous
