// What the parts of a worker store share: who asks, how many bytes may be held, how names are
// hashed, and the numbers that clients keep as text.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/result.h"

namespace ddp::rendezvous {

using StoreSessionId = Strong<struct StoreSessionTag, std::uint64_t>;

// Everything that a store holds is charged to one of these, overhead included.
class StoreBudget {
 public:
  explicit StoreBudget(std::size_t limit) : limit_(limit) {}
  StoreBudget(const StoreBudget&) = delete;
  StoreBudget& operator=(const StoreBudget&) = delete;

  [[nodiscard]] bool has_room(std::size_t bytes) const {
    return used_ <= limit_ && bytes <= limit_ - used_;
  }
  void charge(std::size_t bytes) { used_ += bytes; }
  void release(std::size_t bytes) {
    DDP_ASSERT(bytes <= used_);
    used_ -= bytes;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t limit_;
  std::size_t used_ = 0;
};

// Lets a map of strings be asked with a view.
struct StringHash {
  using is_transparent = void;
  using is_avalanching = void;  // every bit of it is good
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// As C++ stoll: white space and a sign may lead, what follows the digits is ignored. Nothing where
// stoll would throw, nor where the number doesn't end within so many bytes: a value of megabytes
// is not searched for one each time that it changes.
inline constexpr std::size_t kLongestNumber = 64;
[[nodiscard]] inline std::optional<std::int64_t> parse_decimal(std::string_view text) {
  const bool goes_on = text.size() > kLongestNumber;
  text = text.substr(0, kLongestNumber);
  const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || (goes_on && end == text.data() + text.size())) return std::nullopt;
  return number;
}

}  // namespace ddp::rendezvous
