// Which way the workers' stdout and stderr go: on as they are, or through a pipe or a terminal of
// their own that we read.
#pragma once

#include <cstdint>

namespace ddp::launcher {

// What a descriptor of ours leads to.
struct StreamFacts {
  bool terminal = false;
  bool piped = false;        // somebody reads it, and may show it on a terminal
  std::uint64_t device = 0;  // of the file behind it; two streams with the same pair are one
  std::uint64_t inode = 0;
};

enum class StreamRoute : std::uint8_t {
  inherited,  // the worker writes to our own descriptor
  pipe,
  terminal,  // a pseudo terminal, raw
};

struct StreamPlan {
  StreamRoute out = StreamRoute::inherited;
  StreamRoute err = StreamRoute::inherited;
  bool joined = false;         // one pipe or terminal for both: two would lose the order of lines
  bool owns_terminal = false;  // all that comes to the terminal at stderr passes through us
  friend bool operator==(const StreamPlan&, const StreamPlan&) = default;
};

// stderr is always read, for its last lines. stdout only where that is the same file, or where it
// is a terminal.
[[nodiscard]] StreamPlan plan_streams(const StreamFacts& out, const StreamFacts& err);

// Where no pseudo terminal is to be had.
[[nodiscard]] StreamPlan without_terminals(const StreamPlan& plan);

// So many descriptors we need for that many workers, with all that isn't output.
[[nodiscard]] std::uint64_t descriptors_for(const StreamPlan& plan, std::int32_t workers);

}  // namespace ddp::launcher
