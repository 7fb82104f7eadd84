#include <catch2/catch.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "tests/device/nccl_checks.h"

namespace {

using namespace ddp::test;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TEST_CASE("nccl on stand-ins: all_reduce is right for 1 to 3 ranks") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    check_all_reduce(ranks);
  }
}

TEST_CASE("nccl on stand-ins: calls on a stream return at once and keep their order") {
  check_in_stream(3);
}

TEST_CASE("nccl on stand-ins: broadcast gives every rank the root's data") {
  check_broadcast(3);
}

TEST_CASE("nccl on stand-ins: what cannot work is refused in words, and the group lives on") {
  check_refusals(2);
}

TEST_CASE("nccl on stand-ins: memory of another GPU is refused") {
  in_nccl_group(1, [](Group& group, const Gpu&, int, RankReport& report) {
    const Gpu other(1);
    const GpuArray<float> data(other, {1.0f});
    if (group.all_reduce(DDP_FLOAT32, DDP_SUM, data.get(), data.get(), 1) != DDP_INVALID_USE) {
      report.fail("accepted");
    }
    if (std::strstr(group.error().message, "on GPU 1") == nullptr) {
      report.fail(group.error().message);
    }
  });
}

TEST_CASE("nccl on stand-ins: a GPU that is not there makes no group") {
  const auto outcomes = run_ranks(1, [&](int, RankReport& report) {
    const ScratchFolder folder;
    const Plugin plugin(nccl_plugin_file());
    const FileStore store(folder.path());
    const Group group(plugin.table(), store, {0, 1, 5, 5000});
    report.record(group.status(), group.error());
  });
  CHECK(outcomes[0].report.status == DDP_UNAVAILABLE);
  CHECK(std::string(outcomes[0].report.message) == "there is no GPU 5: this process sees 2 GPUs");
}

TEST_CASE("nccl on stand-ins: a killed rank is missed by the others at their timeout") {
  const auto outcomes =
      run_nccl_ranks(3, 2000, [](Group& group, const Gpu& gpu, int rank, RankReport& report) {
        const GpuArray<float> data(gpu, {1.0f});
        const auto reduce = [&] {
          return group.all_reduce(DDP_FLOAT32, DDP_SUM, data.get(), data.get(), 1);
        };
        if (reduce() != DDP_OK) return report.fail(group.error().message);
        if (rank == 1) raise(SIGKILL);
        const auto start = Clock::now();
        report.record(reduce(), group.error());
        report.seconds = seconds_since(start);
        const ddp_status again = reduce();
        if (again != report.status) report.fail("a later call says something else");
      });
  CHECK(outcomes[1].signal == SIGKILL);
  for (const int rank : {0, 2}) {
    const RankReport& report = outcomes[static_cast<size_t>(rank)].report;
    CAPTURE(rank, report.message, report.wrong);
    CHECK(report.wrong[0] == '\0');
    CHECK(report.finished);
    // The first to give up aborts; the other may learn of that before its own time is up.
    CHECK((report.status == DDP_TIMEOUT || report.status == DDP_PEER_LOST));
    CHECK(report.seconds < 12);
  }
}

TEST_CASE("nccl on stand-ins: a rank that never comes ends the set-up in time") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(2, [&](int rank, RankReport& report) {
    if (rank == 1) return;
    const Plugin plugin(nccl_plugin_file());
    const FileStore store(folder.path());
    const auto start = Clock::now();
    const Group group(plugin.table(), store, {rank, 2, 0, 700});
    report.seconds = seconds_since(start);
    report.record(group.status(), group.error());
  });
  CHECK(outcomes[0].report.status == DDP_TIMEOUT);
  CHECK(outcomes[0].report.seconds < 7);
  CHECK(outcomes[0].report.seconds >= 0.6);
}

TEST_CASE("nccl on stand-ins: without rank 0 there is no id, and the wait for it ends in time") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(2, [&](int rank, RankReport& report) {
    if (rank == 0) return;
    const Plugin plugin(nccl_plugin_file());
    const FileStore store(folder.path());
    const Group group(plugin.table(), store, {rank, 2, 0, 700});
    report.record(group.status(), group.error());
  });
  CHECK(outcomes[1].report.status == DDP_TIMEOUT);
}

TEST_CASE("nccl on stand-ins: abort from another thread frees a blocked call") {
  const ScratchFolder marks;
  const auto outcomes =
      run_nccl_ranks(2, 30'000, [&](Group& group, const Gpu&, int rank, RankReport& report) {
        const FileStore store(marks.path());
        const ddp_store_v1& table = *store.table();
        if (rank == 1) {
          if (!wait_until([&] { return store.has("freed"); })) report.fail("rank 0 still waits");
          return;
        }
        const pid_t caller = static_cast<pid_t>(syscall(SYS_gettid));
        std::thread other([&] {
          if (!wait_until([&] { return state_of(caller) == "S"; })) report.fail("never blocked");
          group.abort();
        });
        const auto start = Clock::now();
        report.record(group.barrier(), group.error());
        report.seconds = seconds_since(start);
        other.join();
        if (group.poll() != DDP_ABORTED) report.fail("poll forgot the abort");
        table.set(table.self, "freed", "", 0, nullptr);
      });
  for (const RankOutcome& outcome : outcomes) {
    CHECK(std::string(outcome.report.wrong) == "");
    CHECK(outcome.report.finished);
  }
  CHECK(outcomes[0].report.status == DDP_ABORTED);
  CHECK(outcomes[0].report.seconds < 8);
}
