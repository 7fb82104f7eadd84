// How a group numbers its calls, and what an error leaves behind.
#include "worker_sdk/io/group_state.h"

#include <catch2/catch.hpp>
#include <ddp/error.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "worker_sdk/io/local_store.h"

namespace ddp::sdk {
namespace {

// Writes down the numbers of the calls, and refuses broadcasts.
class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::vector<std::uint64_t>& numbers) : numbers_(numbers) {}
  [[nodiscard]] std::string name() const override { return "fake"; }
  void run(const Call& call, std::chrono::milliseconds) override {
    numbers_.push_back(call.sequence);
    if (call.kind == CallKind::broadcast) throw InvalidUse("not here");
    if (call.kind == CallKind::all_reduce) throw Timeout("too late");
  }

 private:
  std::vector<std::uint64_t>& numbers_;
};

GroupState make_group(std::vector<std::uint64_t>& numbers) {
  return {GroupFacts{}, std::make_shared<LocalStore>(Milliseconds(1000)),
          std::make_unique<FakeBackend>(numbers), nullptr};
}

Call call_of(CallKind kind) {
  Call call;
  call.kind = kind;
  return call;
}

TEST_CASE("group: a call that its back-end refuses takes no number, as no other rank saw it") {
  std::vector<std::uint64_t> numbers;
  GroupState group = make_group(numbers);
  group.run(call_of(CallKind::barrier));
  CHECK_THROWS_AS(group.run(call_of(CallKind::broadcast)), InvalidUse);
  group.run(call_of(CallKind::barrier));
  CHECK(numbers == std::vector<std::uint64_t>{1, 2, 2});
}

TEST_CASE("group: after any other error no call reaches the back-end") {
  std::vector<std::uint64_t> numbers;
  GroupState group = make_group(numbers);
  CHECK_THROWS_AS(group.run(call_of(CallKind::all_reduce)), Timeout);
  CHECK_THROWS_AS(group.run(call_of(CallKind::barrier)), Timeout);
  CHECK(numbers == std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace ddp::sdk
