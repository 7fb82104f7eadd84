// Which connection is closed when there is no room for another: the oldest of those that have
// shown least.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

// Numbers are given in the order of arrival.
using ConnectionId = Strong<struct ConnectionTag, std::uint64_t>;

// How far a connection has come. One that is in use is no newcomer any more, and is never closed
// for another.
enum class Arrival : std::uint8_t {
  silent,     // has never sent a byte: a scanner, or what every client of dialect A keeps
  undecided,  // has sent something that doesn't say yet what it speaks
  greeted,    // speaks our protocol, but hasn't asked for anything
};

class Newcomers {
 public:
  // A connection is left alone for so long after it has come, or has come further: its bytes may
  // be on their way.
  explicit Newcomers(Duration grace) : grace_(grace) {}

  void enter(ConnectionId connection, Instant now);  // silent
  void advance(ConnectionId connection, Arrival arrival, Instant now);
  void leave(ConnectionId connection);  // closed, or in use; unknown ones are ignored

  [[nodiscard]] std::optional<ConnectionId> to_close(Instant now) const;

 private:
  Duration grace_;
  std::array<std::map<ConnectionId, Instant>, 3> since_;  // by Arrival
};

}  // namespace ddp::rendezvous
