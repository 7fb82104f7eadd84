#include "rendezvous/core/message_json.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rendezvous/core/frame_reader.h"

namespace ddp::rendezvous::test {
namespace {

using std::chrono::milliseconds;

const NodeId kNode{"0123456789abcdef0123456789abcdef"};
const RoundId kRound{7, 0xFEDCBA9876543210u};

Failure failure() {
  Failure failure;
  failure.kind = FailureKind::worker_signaled;
  failure.rank = 3;
  failure.local_rank = 1;
  failure.pid = 5'000'000'000;
  failure.host = "b";
  failure.signal = 11;
  failure.core_dumped = true;
  failure.age = milliseconds(1234);
  failure.message = "quote \" and ü";
  failure.secondary = true;
  failure.ran_for = milliseconds(77);
  failure.oom_killed = true;
  failure.peak_memory = 6'000'000'000;
  failure.last_output = "last words";
  failure.tied_ranks = {4, 9};
  return failure;
}

NodeDescription node() {
  NodeDescription node;
  node.id = kNode;
  node.host = "a";
  node.address = "10.0.0.1";
  node.workers = 8;
  node.role = "trainer";
  node.limits = {2, 4};
  node.max_restarts = 3;
  node.node_rank = 1;
  node.restart_delay = milliseconds(1500);
  node.notify = true;
  return node;
}

Placement placement() {
  Placement placement;
  placement.round = kRound;
  placement.group_rank.value = 1;
  placement.group_world_size = 2;
  placement.first_rank.value = 8;
  placement.world_size = 16;
  placement.role_first_rank.value = 4;
  placement.role_world_size = 12;
  placement.restart_count = 1;
  placement.max_restarts = 3;
  placement.master = Endpoint{"a", Port{65535}};
  return placement;
}

NodeStatus status() {
  NodeStatus status;
  status.phase = NodePhase::failed;
  status.round = kRound;
  status.store = Endpoint{"::1", Port{1}};
  status.failure = failure();
  status.loss = failure();
  status.lost_workers = 2;
  status.verdict_acknowledged = true;
  return status;
}

std::string problem(const std::string& text) {
  const auto result = read_message(text);
  return result ? std::string() : result.error().message;
}

}  // namespace

TEST_CASE("message_json: every message comes back as it was") {
  const Verdict verdict{139, "a worker failed", failure(), 2};
  const std::vector<Message> messages = {
      Hello{1, 2, "job", node(), "abcd"},
      Hello{1, 1, "none", NodeDescription{kNode, "", "", 1, "default", {1, 1}, 0, {}}, ""},
      Welcome{1, true, milliseconds(500), milliseconds(2500)},
      StatusMessage{1, NodeStatus{}},
      StatusMessage{9'000'000'000, status()},
      OrderMessage{4, Wait{"1 of 2 nodes", milliseconds(598'000)}},
      OrderMessage{4, Wait{"1 of 2 nodes", {}}},
      OrderMessage{4, Wait{"a pause", milliseconds(100), true}},
      OrderMessage{5, Run{placement()}},
      OrderMessage{5, Run{placement(), failure()}},
      OrderMessage{6, Stop{kRound, "rank 3 failed", failure()}},
      OrderMessage{6, Stop{kRound, "", {}}},
      OrderMessage{7, Close{verdict}},
      OrderMessage{8, Leave{Verdict{0, "every worker succeeded", {}, 0}}},
      OrderMessage{8, Refuse{121, "no"}},
      RefuseMessage{121, "no"},
  };
  for (const Message& message : messages) {
    const std::string text = write_message(message);
    INFO(text);
    const auto read = read_message(text);
    REQUIRE(read.ok());
    REQUIRE(read.value().has_value());
    CHECK(*read.value() == message);
  }
}

TEST_CASE("message_json: identities are hexadecimal strings, times whole milliseconds") {
  const std::string text = write_message(StatusMessage{1, status()});
  CHECK(text.find(R"("nonce":"fedcba9876543210")") != std::string::npos);
  CHECK(text.find(R"("number":7)") != std::string::npos);
  CHECK(text.find(R"("age_ms":1234)") != std::string::npos);
}

TEST_CASE(
    "message_json: unknown members and types are ignored, missing optional ones take defaults") {
  const auto welcome = read_message(R"({"type":"welcome","body":{"version":1,"new":[1]},"x":0})");
  REQUIRE(welcome.ok());
  CHECK(*welcome.value() == Message(Welcome{}));
  const auto unknown = read_message(R"({"type":"proof","body":{"hmac":"00"}})");
  REQUIRE(unknown.ok());
  CHECK_FALSE(unknown.value().has_value());
}

TEST_CASE("message_json: what is wrong is named by its path, in one sentence") {
  CHECK(problem("{").find("a message is not JSON") == 0);
  CHECK(problem("[1]") == "a message is not an object with a string `type`");
  CHECK(problem(R"({"type":1})") == "a message is not an object with a string `type`");
  CHECK(problem(R"({"type":"status","body":3})") == "the `body` of a message is not an object");
  CHECK(problem(R"({"type":"status"})") == "member `body.sequence` is missing");
  CHECK(problem(R"({"type":"status","body":{"sequence":1,"status":{"phase":"asleep"}}})") ==
        "member `body.status.phase` is not a phase");
  CHECK(problem(R"({"type":"status","body":{"sequence":1.5,"status":{"phase":"idle"}}})") ==
        "member `body.sequence` is not an integer");
  CHECK(problem(R"({"type":"welcome","body":{"version":4294967296}})") ==
        "member `body.version` does not fit in 32 bits");
  CHECK(problem(R"({"type":"welcome","body":{"version":1,"timeout_ms":-1}})") ==
        "member `body.timeout_ms` is not a sensible time");
  CHECK(problem(R"({"type":"order","body":{"sequence":1,"order":{"kind":"dance"}}})") ==
        "member `body.order.kind` is not an order that this version knows");
  CHECK(problem(R"({"type":"order","body":{"sequence":1,"order":{"kind":"stop","round":)"
                R"({"number":1,"nonce":"xyz"}}}})") ==
        "member `body.order.round.nonce` is not a hexadecimal number of 64 bits");
  CHECK(problem(R"({"type":"hello","body":{"min_version":1,"max_version":1,"job":"j","node":)"
                R"({"id":"short","limits":{"min":1,"max":1}}}})") ==
        "member `body.node.id` is not 32 hexadecimal digits");
}

TEST_CASE("message_json: bytes that are no UTF-8 do not cost the connection") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"plain", "plain"},
      {"\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80"},
      {"\xFF", "?"},
      {"a\xC3", "a?"},               // cut off
      {"\xC0\xAF", "??"},            // overlong
      {"\xE0\x80\x80", "???"},       // overlong
      {"\xED\xA0\x80", "???"},       // surrogate
      {"\xF4\x90\x80\x80", "????"},  // beyond Unicode
      {std::string("\0", 1), std::string("\0", 1)},
  };
  for (const auto& [sent, received] : table) {
    const auto read = read_message(write_message(RefuseMessage{1, sent}));
    REQUIRE(read.ok());
    CHECK(std::get<RefuseMessage>(*read.value()).reason == received);
  }
}

TEST_CASE("message_json: a text at the limit stays whole, a longer one is cut") {
  for (const std::size_t length : {kMaxText, kMaxText + 1}) {
    const auto read = read_message(write_message(RefuseMessage{1, std::string(length, 'x')}));
    REQUIRE(read.ok());
    CHECK(std::get<RefuseMessage>(*read.value()).reason.size() == kMaxText);
  }
}

TEST_CASE("message_json: no text makes a message that is too long for a frame") {
  for (const char c : {'\x01', '"', '\xFF', 'x'}) {
    const std::string endless(2 * kMaxText, c);
    Failure cause = failure();
    cause.host = endless;
    cause.message = endless;
    const Stop stop{kRound, endless, cause};
    std::string frame;
    append_frame(frame, write_message(OrderMessage{1, stop}));
    CHECK(frame.size() < kMaxFrame);
    FrameReader reader(kMaxFrame);
    const auto fed = reader.feed(frame, [](std::string_view payload) {
      CHECK(read_message(payload).ok());
      return true;
    });
    CHECK(fed.ok());
  }
}

}  // namespace ddp::rendezvous::test
