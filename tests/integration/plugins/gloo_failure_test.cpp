#include <catch2/catch.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/integration/plugins/plugin.h"
#include "tests/integration/plugins/rank_processes.h"

namespace {

using namespace ddp::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void mark(const FileStore& store, const std::string& key) {
  store.table()->set(store.table()->self, key.c_str(), "", 0, nullptr);
}

size_t entries(const char* folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                           std::filesystem::directory_iterator()));
}

void require_all_finished(const std::vector<RankOutcome>& outcomes) {
  for (const RankOutcome& outcome : outcomes) {
    CHECK(std::string(outcome.report.wrong) == "");
    CHECK(outcome.report.finished);
    CHECK_FALSE(outcome.hung);
  }
}

}  // namespace

TEST_CASE("gloo: ranks that call different things are told so, with both calls, and go on") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(3, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    Group group(plugin.table(), store, {rank, 3});
    if (!group.made()) return report.fail(group.error().message);
    std::vector<float> data(2000, 1.0f);
    const bool odd = rank == 1;
    const auto mismatched = [&](ddp_status status, const char* what) {
      if (status != DDP_MISMATCH) report.fail(what + std::string(": ") + std::to_string(status));
    };
    float* const all = data.data();
    mismatched(group.all_reduce(DDP_FLOAT32, DDP_SUM, all, all, odd ? 1000 : 2000), "size");
    report.record(group.status(), group.error());
    mismatched(group.all_reduce(DDP_FLOAT32, odd ? DDP_MAX : DDP_SUM, all, all, 10), "operation");
    mismatched(group.all_reduce(odd ? DDP_INT32 : DDP_FLOAT32, DDP_SUM, all, all, 10), "type");
    mismatched(group.broadcast(DDP_FLOAT32, odd ? 1 : 0, all, all, 10), "root");
    mismatched(odd ? group.barrier() : group.broadcast(DDP_FLOAT32, 0, all, all, 10), "kind");
    if (group.all_reduce(DDP_FLOAT32, DDP_SUM, all, all, 2000) != DDP_OK) report.fail("not usable");
    if (data[1999] != 3.0f) report.fail("wrong sum afterwards");
  });
  require_all_finished(outcomes);
  for (const RankOutcome& outcome : outcomes) {
    CAPTURE(outcome.report.message);
    CHECK(std::strstr(outcome.report.message, "rank 0") != nullptr);
    CHECK(std::strstr(outcome.report.message, "rank 1") != nullptr);
    CHECK(std::strstr(outcome.report.message, "1000 elements") != nullptr);
    CHECK(std::strstr(outcome.report.message, "2000 elements") != nullptr);
    CHECK(outcome.report.error_rank == 1);
  }
}

TEST_CASE("gloo: a killed rank is a lost peer for every other, neighbour or not") {
  const ScratchFolder folder;
  constexpr int kRanks = 5;
  const auto outcomes = run_ranks(kRanks, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    Group group(plugin.table(), store, {rank, kRanks});
    if (!group.made()) return report.fail(group.error().message);
    std::vector<float> data(300'000, 1.0f);
    const auto reduce = [&] {
      return group.all_reduce(DDP_FLOAT32, DDP_MAX, data.data(), data.data(), data.size());
    };
    for (int i = 0; i < 3; ++i) {
      if (reduce() != DDP_OK) return report.fail("failed before the kill");
    }
    if (rank == 2) raise(SIGKILL);
    const auto start = Clock::now();
    report.record(reduce(), group.error());
    report.seconds = seconds_since(start);
    const auto again = Clock::now();
    if (reduce() != DDP_PEER_LOST) report.fail("a later call forgot the loss");
    if (seconds_since(again) > 1) report.fail("a later call waited");
  });
  CHECK(outcomes[2].signal == SIGKILL);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == 2) continue;
    const RankReport& report = outcomes[static_cast<size_t>(rank)].report;
    CAPTURE(rank, report.message, report.wrong);
    CHECK(report.finished);
    CHECK(report.wrong[0] == '\0');
    CHECK(report.status == DDP_PEER_LOST);
    CHECK(report.seconds < 5);
  }
}

TEST_CASE("gloo: a rank that never comes ends the set-up in time, and is named") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(3, [&](int rank, RankReport& report) {
    if (rank == 1) return;
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    const auto start = Clock::now();
    const Group group(plugin.table(), store, {rank, 3, -1, 700});
    report.seconds = seconds_since(start);
    report.record(group.status(), group.error());
    if (group.made()) report.fail("a group without rank 1");
  });
  require_all_finished(outcomes);
  for (const int rank : {0, 2}) {
    const RankReport& report = outcomes[static_cast<size_t>(rank)].report;
    CAPTURE(rank, report.message);
    CHECK(report.status == DDP_TIMEOUT);
    CHECK(std::strstr(report.message, "rank 1") != nullptr);
    CHECK(report.seconds >= 0.6);
    CHECK(report.seconds < 7);
  }
}

TEST_CASE("gloo: a rank that dies between its address and its connection does not hold the rest") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(3, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    const auto address = folder.path() / "g0_gloo+0";
    const auto victim = folder.path() / "victim";
    std::thread killer;
    if (rank == 0) {
      std::ofstream(victim) << getpid() << std::flush;
      // It waits for the others' addresses; they begin when it is dead.
      killer = std::thread([&] {
        if (wait_until([&] { return std::filesystem::exists(address); })) raise(SIGKILL);
      });
    } else {
      const auto died = [&] {
        pid_t process = 0;
        std::ifstream(victim) >> process;
        const std::string state = state_of(process);
        return std::filesystem::exists(address) && (state == "Z" || state.empty());
      };
      if (!wait_until(died)) return report.fail("rank 0 did not die");
    }
    const auto start = Clock::now();
    const Group group(plugin.table(), store, {rank, 3, -1, 2000});
    report.seconds = seconds_since(start);
    report.record(group.status(), group.error());
    if (killer.joinable()) killer.join();
  });
  CHECK(outcomes[0].signal == SIGKILL);
  for (const int rank : {1, 2}) {
    const RankReport& report = outcomes[static_cast<size_t>(rank)].report;
    CAPTURE(rank, report.message, report.wrong);
    CHECK(report.wrong[0] == '\0');
    CHECK((report.status == DDP_TIMEOUT || report.status == DDP_PEER_LOST));
    CHECK(report.seconds < 10);
  }
}

TEST_CASE("gloo: a silent rank is a timeout for all who wait, not the loss of a peer") {
  const ScratchFolder folder;
  constexpr int kRanks = 5;
  const auto outcomes = run_ranks(kRanks, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    Group group(plugin.table(), store, {rank, kRanks});
    if (!group.made()) return report.fail(group.error().message);
    const auto all_gave_up = [&] {
      return store.has("done0") && store.has("done1") && store.has("done2") && store.has("done3");
    };
    if (rank == 4) {
      if (!wait_until(all_gave_up, 20s)) report.fail("the others still wait");
      return;
    }
    float value = 1;
    const auto start = Clock::now();
    // Rank 2 hears nothing from rank 0, which hears nothing from rank 4. It would wait for long,
    // and learns from rank 0 why that one hung up.
    const int64_t timeout_ms = rank == 2 ? 15'000 : 500;
    report.record(group.all_reduce(DDP_FLOAT32, DDP_SUM, &value, &value, 1, timeout_ms),
                  group.error());
    report.seconds = seconds_since(start);
    mark(store, "done" + std::to_string(rank));
  });
  require_all_finished(outcomes);
  for (int rank = 0; rank < kRanks - 1; ++rank) {
    const RankReport& report = outcomes[static_cast<size_t>(rank)].report;
    CAPTURE(rank, report.message);
    CHECK(report.status == DDP_TIMEOUT);
    CHECK(report.seconds < 6);
  }
}

TEST_CASE("gloo: abort from another thread frees a blocked call") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(2, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    Group group(plugin.table(), store, {rank, 2});
    if (!group.made()) return report.fail(group.error().message);
    if (rank == 1) {
      if (!wait_until([&] { return store.has("freed"); }, 20s)) report.fail("rank 0 still waits");
      return;
    }
    const pid_t caller = static_cast<pid_t>(syscall(SYS_gettid));
    Clock::time_point aborted;
    std::thread other([&] {
      if (!wait_until([&] { return state_of(caller) == "S"; })) report.fail("never blocked");
      aborted = Clock::now();
      group.abort();
    });
    const ddp_status status = group.barrier();
    other.join();
    report.seconds = seconds_since(aborted);
    report.record(status, group.error());
    if (group.barrier() != DDP_ABORTED) report.fail("a later call forgot the abort");
    mark(store, "freed");
  });
  require_all_finished(outcomes);
  CAPTURE(outcomes[0].report.message);
  CHECK(outcomes[0].report.status == DDP_ABORTED);
  CHECK(outcomes[0].report.seconds < 5);
}

TEST_CASE("gloo: twenty rebuilds in one process leak neither descriptors nor threads") {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(3, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    size_t descriptors = 0;
    size_t threads = 0;
    for (int generation = 0; generation <= 20; ++generation) {
      {
        const FileStore store(folder.path(), generation);
        Group group(plugin.table(), store, {rank, 3});
        if (!group.made()) return report.fail(group.error().message);
        int32_t value = 1;
        if (group.all_reduce(DDP_INT32, DDP_SUM, &value, &value, 1) != DDP_OK || value != 3) {
          return report.fail("rebuild " + std::to_string(generation) + " does not add");
        }
        if (generation % 3 == 1) group.abort();  // A group that broke must leave nothing either.
      }
      if (generation == 0) {
        descriptors = entries("/proc/self/fd");
        threads = entries("/proc/self/task");
      }
    }
    const bool settled = wait_until([&] {
      return entries("/proc/self/fd") == descriptors && entries("/proc/self/task") == threads;
    });
    if (!settled) {
      report.fail("descriptors " + std::to_string(descriptors) + " -> " +
                  std::to_string(entries("/proc/self/fd")) + ", threads " +
                  std::to_string(threads) + " -> " + std::to_string(entries("/proc/self/task")));
    }
  });
  require_all_finished(outcomes);
}
