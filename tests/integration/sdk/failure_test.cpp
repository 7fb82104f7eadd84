// What ranks are told when another one dies, leaves, stays away or calls something else.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <ddp/ddp.hpp>
#include <random>
#include <thread>

#include "tests/integration/sdk/ranks.h"

namespace ddp::testing {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Survivors of a death, however it came: far below the timeout of the calls themselves.
constexpr std::chrono::seconds kSoon{10};

// Sums of all sizes until something throws.
std::string sum_for_ever(ProcessGroup& group) {
  std::vector<float> large(400'000, 1.0F);
  std::vector<float> small(100, 1.0F);
  for (;;) {
    group.all_reduce(small, ReduceOp::avg);
    group.all_reduce(large, ReduceOp::avg);
    group.barrier();
    group.broadcast(large, 1);
  }
}

TEST_CASE("shm: ranks that call different things are told who called what") {
  const StoreServer store;
  Ranks job(3, store, [](int rank) {
    ProcessGroup group = init_process_group();
    group.barrier();
    std::vector<float> data(rank == 2 ? 11 : 10);
    group.all_reduce(data);
    return std::string("went through");
  });
  const auto outcomes = job.wait();
  for (const Outcome& outcome : outcomes) CHECK_THAT(outcome.text, StartsWith("Mismatch"));
  CHECK_THAT(outcomes[0].text, Contains("rank 0 called all_reduce(float32, 10 elements, sum)") &&
                                   Contains("rank 2 called all_reduce(float32, 11 elements, sum)"));
  CHECK_THAT(outcomes[2].text, Contains("rank 2 called all_reduce(float32, 11 elements, sum)"));
}

TEST_CASE("shm: a mismatch of kind, type, operation, root or size class is found") {
  const int which = GENERATE(0, 1, 2, 3, 4);
  const StoreServer store;
  Ranks job(2, store, [which](int rank) {
    ProcessGroup group = init_process_group();
    std::vector<float> floats(100'000);
    std::vector<std::int32_t> integers(100'000);
    const bool odd = rank == 1;
    switch (which) {
      case 0:
        odd ? group.barrier() : group.all_reduce(floats);
        break;
      case 1:
        odd ? group.all_reduce(integers) : group.all_reduce(floats);
        break;
      case 2:
        group.all_reduce(floats, odd ? ReduceOp::max : ReduceOp::sum);
        break;
      case 3:
        group.broadcast(floats, rank);
        break;
      default:
        group.all_reduce(floats.data(), odd ? 10 : 100'000);
    }
    return std::string("went through");
  });
  for (const Outcome& outcome : job.wait()) CHECK_THAT(outcome.text, StartsWith("Mismatch"));
}

TEST_CASE("shm: after an error every later call throws the same again") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    ProcessGroup group = init_process_group();
    std::vector<float> data(static_cast<std::size_t>(rank) + 1);
    try {
      group.all_reduce(data);
    } catch (const Mismatch&) {
    }
    group.barrier();
    return std::string("went through");
  });
  for (const Outcome& outcome : job.wait()) CHECK_THAT(outcome.text, StartsWith("Mismatch"));
}

TEST_CASE("shm: a bad argument breaks nothing") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    ProcessGroup group = init_process_group();
    std::vector<float> data{1};
    if (rank == 0) {
      try {
        group.broadcast(data, 2);
        return std::string("no throw");
      } catch (const InvalidUse&) {
      }
    }
    group.all_reduce(data);
    return std::to_string(static_cast<int>(data[0]));
  });
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "2");
}

TEST_CASE("shm: the timeout names the rank that stays away") {
  const StoreServer store;
  Ranks job(3, store,
            [](int rank) {
              ProcessGroup group = init_process_group();
              if (rank == 1) {
                say("stays away");
                ::pause();
              }
              group.barrier();
              return std::string("went through");
            },
            {{"DDP_TIMEOUT", "1.5"}});
  job.await_word(1, "stays away");
  // Rank 1 sleeps for good: the others' outcomes come first.
  for (const int rank : {0, 2}) CHECK(job.await_end(rank));
  ::kill(job.pid(1), SIGKILL);
  const auto outcomes = job.wait();
  CHECK(outcomes[1].signal == SIGKILL);
  for (const int rank : {0, 2}) {
    CHECK_THAT(outcomes[static_cast<std::size_t>(rank)].text,
               StartsWith("Timeout") && Contains("rank 1"));
  }
}

TEST_CASE("shm: a stopped rank is a timeout, not a loss") {
  const StoreServer store;
  Ranks job(2, store,
            [](int rank) {
              ProcessGroup group = init_process_group();
              group.barrier();
              if (rank == 1) ::raise(SIGSTOP);
              group.barrier();
              if (rank == 1) say("the other had come");
              group.barrier();
              return std::string("went through");
            },
            {{"DDP_TIMEOUT", "1.5"}});
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(job.pid(1)), &info, WSTOPPED | WNOWAIT) == 0);
  REQUIRE(::waitid(P_PID, static_cast<id_t>(job.pid(0)), &info, WEXITED | WNOWAIT) == 0);
  ::kill(job.pid(1), SIGCONT);
  const auto outcomes = job.wait();
  CHECK_THAT(outcomes[0].text, StartsWith("Timeout") && Contains("rank 1"));
  // What the other had done before it gave up still counts; then the late one learns of it at once.
  CHECK_THAT(outcomes[1].words, Contains("the other had come"));
  CHECK_THAT(outcomes[1].text, StartsWith("Timeout") && Contains("rank 0"));
}

TEST_CASE("shm: a rank that leaves is named, and what was finished stays finished") {
  const StoreServer store;
  Ranks job(3, store, [](int rank) {
    ProcessGroup group = init_process_group();
    std::vector<double> data(300'000, 1.0);
    group.all_reduce(data);
    if (rank == 1) return std::string("left early");
    if (data[299'999] != 3.0) return std::string("wrong sum");
    group.all_reduce(data);
    return std::string("went through");
  });
  const auto outcomes = job.wait();
  CHECK(outcomes[1].text == "left early");
  for (const std::size_t rank : {0U, 2U}) {
    CHECK_THAT(outcomes[rank].text, StartsWith("PeerLost 1") && Contains("has left the group"));
  }
}

TEST_CASE(
    "shm: a rank that exits without a word is found by its pidfd, with and without an agent") {
  const bool agent = GENERATE(false, true);
  const StoreServer store;
  const ControlPageOwner page(2);
  Variables variables;
  if (agent) variables = {{"DDP_SHM_FD", std::to_string(page.fd())}, {"DDP_ROUND", "1:abc"}};
  Ranks job(
      2, store,
      [](int rank) {
        ProcessGroup group = init_process_group();
        if (rank == 1) ::_exit(0);  // the group is not destroyed
        group.barrier();
        return std::string("went through");
      },
      variables);
  const auto outcomes = job.wait(kSoon);
  CHECK(outcomes[1].exit_code == 0);
  CHECK_THAT(outcomes[0].text, StartsWith("PeerLost 1") && Contains("ended without leaving"));
}

TEST_CASE("shm: a forked child may not use its parent's group, and does it no harm") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    auto group = std::make_unique<ProcessGroup>(init_process_group());
    if (rank == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        int code = 1;
        try {
          group->barrier();
        } catch (const InvalidUse&) {
          try {
            group->store().set("a", "b");
          } catch (const InvalidUse&) {
            code = 0;
          }
        }
        group.reset();
        ::_exit(code);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      if (status != 0) return std::string("the child could");
    }
    std::vector<int> data{1};
    group->all_reduce(data);
    return std::to_string(data[0]);
  });
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "2");
}

TEST_CASE("shm: ranks hear from the launcher's page who has died and why") {
  const StoreServer store;
  ControlPageOwner page(3);
  Ranks job(3, store,
            [](int rank) {
              ProcessGroup group = init_process_group();
              if (rank == 2) {
                say("ready");
                ::pause();
              }
              return sum_for_ever(group);
            },
            {{"DDP_SHM_FD", std::to_string(page.fd())}, {"DDP_ROUND", "1:abc"}});
  job.await_word(2, "ready");
  ::kill(job.pid(2), SIGKILL);
  page.poison(2, job.pid(2), "host-x", "killed by SIGKILL after 3 s");
  const auto outcomes = job.wait(kSoon);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(outcomes[rank].text,
               StartsWith("PeerLost 2") && Contains("rank 2 on host-x is lost (killed by SIGKILL"));
  }
}

TEST_CASE("shm: a death during the start is heard by those who wait at the store") {
  const StoreServer store;
  ControlPageOwner page(3);
  Ranks job(3, store,
            [](int rank) {
              if (rank == 2) {
                say("never starts");
                ::pause();
              }
              ProcessGroup group = init_process_group();
              return std::string("went through");
            },
            {{"DDP_SHM_FD", std::to_string(page.fd())}, {"DDP_ROUND", "1:abc"}});
  job.await_word(2, "never starts");
  ::kill(job.pid(2), SIGKILL);
  page.poison(2, job.pid(2), "host-x", "killed by SIGKILL");
  const auto outcomes = job.wait(kSoon);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(outcomes[rank].text, StartsWith("PeerLost 2"));
  }
}

// A rank is killed at a random moment of calls of all kinds; nobody may hang, and each survivor
// must name it.
void kill_at_random(unsigned seed, bool agent) {
  std::mt19937 random(seed);
  const int ranks = 2 + static_cast<int>(random() % 3);
  const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
  const auto delay = std::chrono::microseconds(random() % 30'000);
  const StoreServer store;
  ControlPageOwner page(ranks);
  Variables variables;
  if (agent) variables = {{"DDP_SHM_FD", std::to_string(page.fd())}, {"DDP_ROUND", "1:abc"}};
  Ranks job(
      ranks, store,
      [](int) {
        ProcessGroup group = init_process_group();
        say("started");
        return sum_for_ever(group);
      },
      variables);
  job.await_word(victim, "started");
  std::this_thread::sleep_for(delay);
  ::kill(job.pid(victim), SIGKILL);
  if (agent) page.poison(victim, job.pid(victim), "host-x", "killed by SIGKILL");
  const auto outcomes = job.wait(kSoon);
  INFO("seed " << seed << ", " << ranks << " ranks, victim " << victim << ", agent " << agent);
  for (int rank = 0; rank < ranks; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      CHECK(outcome.signal == SIGKILL);  // the fault took place
    } else {
      CHECK_FALSE(outcome.overdue);
      CHECK_THAT(outcome.text, StartsWith("PeerLost " + std::to_string(victim) + ":"));
    }
  }
}

TEST_CASE("shm: a rank killed at any moment is lost to all others within seconds, 50 trials") {
  for (unsigned seed = 1; seed <= 25; ++seed) {
    kill_at_random(seed, false);
    kill_at_random(seed, true);
  }
}

}  // namespace
}  // namespace ddp::testing
