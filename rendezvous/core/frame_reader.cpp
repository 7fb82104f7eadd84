#include "rendezvous/core/frame_reader.h"

#include <algorithm>

namespace ddp::rendezvous {
namespace {

constexpr std::size_t kLengthSize = 4;

std::uint32_t read_length(std::string_view bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return length;
}

}  // namespace

void append_frame(std::string& out, std::string_view payload) {
  DDP_ASSERT(payload.size() <= kMaxFrame);
  const auto length = static_cast<std::uint32_t>(payload.size());
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    out.push_back(static_cast<char>((length >> (8 * i)) & 0xFF));
  }
  out.append(payload);
}

FrameReader::FrameReader(std::size_t limit, std::string_view magic)
    : limit_(limit), magic_(magic) {}

FrameReader::Step FrameReader::next(std::string_view& bytes) {
  Step step;
  const std::size_t common = std::min(magic_.size(), bytes.size());
  if (bytes.substr(0, common) != magic_.substr(0, common)) {
    step.error = "the peer does not speak the agent protocol";
    return step;
  }
  magic_.remove_prefix(common);
  bytes.remove_prefix(common);

  const bool in_place = partial_.empty() && bytes.size() >= kLengthSize;
  if (!in_place && !collect(bytes, kLengthSize)) return step;
  const std::size_t length = read_length(in_place ? bytes : std::string_view(partial_));
  if (length > limit_) {
    step.error = "a frame of " + std::to_string(length) + " bytes is longer than the " +
                 std::to_string(limit_) + " allowed here";
    return step;
  }
  if (in_place && bytes.size() >= kLengthSize + length) {
    step.payload = bytes.substr(kLengthSize, length);
    bytes.remove_prefix(kLengthSize + length);
  } else {
    if (!collect(bytes, kLengthSize + length)) return step;
    step.payload = std::string_view(partial_).substr(kLengthSize);
  }
  step.complete = true;
  return step;
}

bool FrameReader::collect(std::string_view& bytes, std::size_t size) {
  if (partial_.size() < size) {
    const std::size_t taken = std::min(size - partial_.size(), bytes.size());
    partial_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
  }
  return partial_.size() >= size;
}

}  // namespace ddp::rendezvous
