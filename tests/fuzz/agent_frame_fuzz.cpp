// Feeds bytes to the reader of agent frames and what it makes of them to a coordinator and a
// member: the first byte chooses the size of the pieces.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/frame_reader.h"
#include "rendezvous/core/member.h"
#include "rendezvous/core/message_json.h"
#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

struct Read {
  std::vector<Message> messages;
  bool failed = false;
};

Read read_all(std::string_view stream, std::size_t piece) {
  Read read;
  FrameReader reader(kMaxFrameBeforeHello, kAgentMagic);
  while (!stream.empty() && !read.failed) {
    const std::string_view part = stream.substr(0, piece);
    stream.remove_prefix(part.size());
    const auto fed = reader.feed(part, [&read](std::string_view payload) {
      auto message = read_message(payload);
      read.failed = !message.ok();
      if (message && message.value()) read.messages.push_back(std::move(*message.value()));
      return !read.failed;
    });
    read.failed = read.failed || !fed.ok();
  }
  return read;
}

// What can be read can be written, and is the same when it is read again.
void check_round_trip(const Message& message) {
  const std::string text = write_message(message);
  const auto again = read_message(text);
  DDP_ASSERT(again.ok() && again.value().has_value());
  DDP_ASSERT(write_message(*again.value()) == text);
}

}  // namespace
}  // namespace ddp::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::rendezvous;
  if (size < 1) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read pieces = read_all(stream, 1 + data[0] % 64);
  const Read whole = read_all(stream, stream.size() + 1);
  DDP_ASSERT(pieces.messages == whole.messages && pieces.failed == whole.failed);

  Coordinator coordinator{CoordinatorSetup{}};
  Member member{MemberSetup{}};
  Instant now{};
  (void)coordinator.handle(SessionOpened{{1}, "192.0.2.1", false}, now);
  (void)member.on_time(now);
  (void)member.handle(Connected{{1}}, now);
  for (const Message& message : whole.messages) {
    check_round_trip(message);
    now += std::chrono::milliseconds(100);
    (void)coordinator.handle(MessageReceived{{1}, message}, now);
    (void)coordinator.on_time(now);
    (void)member.handle(MessageArrived{{1}, message}, now);
    (void)member.on_time(now);
  }
  return 0;
}
