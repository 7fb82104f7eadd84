#include "launcher/core/quantity_text.h"

#include <chrono>

namespace ddp::launcher {

std::string duration_text(rendezvous::Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  const std::int64_t seconds = milliseconds / 1000;
  if (seconds >= 3600) {
    return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " min";
  }
  if (seconds >= 60) {
    return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  }
  if (seconds >= 10) {
    return std::to_string(seconds) + " s";
  }
  const std::string hundredths = std::to_string(milliseconds % 1000 / 10);
  return std::to_string(seconds) + "." + (hundredths.size() < 2 ? "0" : "") + hundredths + " s";
}

std::string memory_text(std::int64_t bytes) {
  constexpr std::int64_t kKibi = 1024;
  constexpr std::int64_t kMebi = 1024 * kKibi;
  constexpr std::int64_t kGibi = 1024 * kMebi;
  if (bytes >= kGibi) {
    const std::int64_t tenths = bytes / (kGibi / 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
  }
  if (bytes >= kMebi) {
    return std::to_string(bytes / kMebi) + " MiB";
  }
  return std::to_string(bytes / kKibi) + " KiB";
}

}  // namespace ddp::launcher
