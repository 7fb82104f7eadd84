#include "rendezvous/core/frame_reader.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ddp::rendezvous::test {
namespace {

std::string frame(std::string_view payload) {
  std::string out;
  append_frame(out, payload);
  return out;
}

struct Fed {
  std::vector<std::string> frames;
  std::string error;
};

Fed feed(FrameReader& reader, std::string_view stream, std::size_t piece) {
  Fed fed;
  while (!stream.empty() && fed.error.empty()) {
    const std::string_view part = stream.substr(0, piece);
    stream.remove_prefix(part.size());
    const auto result = reader.feed(part, [&](std::string_view payload) {
      fed.frames.emplace_back(payload);
      return true;
    });
    if (!result) fed.error = result.error().message;
  }
  return fed;
}

}  // namespace

TEST_CASE("frame_reader: the length is four bytes, little-endian") {
  CHECK(frame("abc") == std::string("\x03\0\0\0abc", 7));
}

TEST_CASE("frame_reader: pieces of any size make the same frames") {
  const std::string stream =
      std::string(kAgentMagic) + frame("one") + frame("") + frame(std::string(300, 'x'));
  const std::size_t piece = GENERATE(1U, 2U, 3U, 5U, 7U, 11U, 64U, 10'000U);
  FrameReader reader(1000, kAgentMagic);
  const Fed fed = feed(reader, stream, piece);
  CHECK(fed.error.empty());
  CHECK(fed.frames == std::vector<std::string>{"one", "", std::string(300, 'x')});
}

TEST_CASE(
    "frame_reader: a frame at the limit passes, one byte more is refused by its length alone") {
  FrameReader at_limit(10);
  CHECK(feed(at_limit, frame("0123456789"), 100).frames.size() == 1);
  FrameReader over(10);
  const Fed fed = feed(over, frame("0123456789a").substr(0, 4), 100);
  CHECK(fed.frames.empty());
  CHECK(fed.error == "a frame of 11 bytes is longer than the 10 allowed here");
}

TEST_CASE(
    "frame_reader: a limit that is raised in the middle of a piece holds from the next frame") {
  FrameReader reader(4);
  std::vector<std::string> frames;
  const auto result = reader.feed(frame("tiny") + frame("longer"), [&](std::string_view payload) {
    frames.emplace_back(payload);
    reader.set_limit(10);
    return true;
  });
  CHECK(result.ok());
  CHECK(frames == std::vector<std::string>{"tiny", "longer"});
}

TEST_CASE("frame_reader: a sink that has had enough gets nothing more of that piece") {
  FrameReader reader(10);
  int calls = 0;
  const auto result = reader.feed(frame("a") + frame("b"), [&](std::string_view) {
    ++calls;
    return false;
  });
  CHECK(result.ok());
  CHECK(calls == 1);
}

TEST_CASE(
    "frame_reader: a peer that begins with something else is told from its first wrong byte") {
  FrameReader reader(10, kAgentMagic);
  CHECK(feed(reader, "ddpx", 1).error == "the peer does not speak the agent protocol");
}

}  // namespace ddp::rendezvous::test
