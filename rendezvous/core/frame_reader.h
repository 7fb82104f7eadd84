// Cuts a byte stream, in whatever pieces it arrives, into the whole frames of the agent protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {

inline constexpr std::string_view kAgentMagic = "ddpagent";
inline constexpr std::size_t kMaxFrame = 1'048'576;
inline constexpr std::size_t kMaxFrameBeforeHello = 16 * 1024;

// Appends length and payload. `payload` is at most kMaxFrame long.
void append_frame(std::string& out, std::string_view payload);

// A frame that lies whole in one piece is handed on without a copy. Memory grows with the bytes
// that came, never with a length that was merely claimed.
class FrameReader {
 public:
  // `magic` is expected once, before the first frame.
  explicit FrameReader(std::size_t limit, std::string_view magic = {});

  // For the frames whose length has not been read yet.
  void set_limit(std::size_t limit) { limit_ = limit; }

  // Calls `sink(std::string_view payload) -> bool` for each frame that is now complete, until it
  // says false: then the rest of `bytes` is dropped. After an error the reader is of no more use.
  template <typename Sink>
  [[nodiscard]] Result<void> feed(std::string_view bytes, Sink&& sink) {
    while (true) {
      Step step = next(bytes);
      if (!step.error.empty()) return Error{std::move(step.error)};
      if (!step.complete) return {};
      const bool go_on = sink(step.payload);
      partial_.clear();
      if (!go_on) return {};
    }
  }

 private:
  struct Step {
    bool complete = false;
    std::string_view payload;  // into `bytes` or into partial_
    std::string error;
  };

  // Takes what it uses from the front of `bytes`.
  Step next(std::string_view& bytes);
  // Has partial_ grown to `size`?
  bool collect(std::string_view& bytes, std::size_t size);

  std::size_t limit_;
  std::string_view magic_;  // what is still expected of it
  std::string partial_;     // of one frame, its length included
};

}  // namespace ddp::rendezvous
