#include "launcher/core/deaths.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <vector>

namespace {

using namespace ddp::launcher;
using ddp::rendezvous::FailureKind;
using std::chrono::milliseconds;
using std::chrono::seconds;

Instant at(int ms) {
  return Instant{milliseconds(ms)};
}

Death exited(int rank, int code = 1) {
  Death death;
  death.failure.rank = rank;
  death.failure.exit_code = code;
  return death;
}

Death killed(int rank, int signal) {
  Death death = exited(rank, -1);
  death.failure.kind = FailureKind::worker_signaled;
  death.failure.signal = signal;
  return death;
}

Death lost_peer(int rank) {
  Death death = exited(rank);
  death.failure.secondary = true;
  return death;
}

Death with_file(Death death, std::chrono::microseconds failed_at,
                std::chrono::microseconds told_at = seconds(1000)) {
  death.failed_at = failed_at;
  death.told_at = told_at;
  return death;
}

int first_of(const Deaths& deaths) {
  return deaths.first_cause() ? deaths.first_cause()->failure.rank : -1;
}

using Ties = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("deaths: the first one seen, if nothing else tells") {
  Deaths deaths;
  CHECK(first_of(deaths) == -1);
  deaths.add(exited(2), at(1));
  deaths.add(exited(0), at(2));
  CHECK(first_of(deaths) == 2);
  CHECK(deaths.first_cause()->at == at(1));
  CHECK(deaths.first_cause()->failure.tied_ranks.empty());
}

TEST_CASE("deaths: one that tells of a lost peer never outranks one that doesn't") {
  Deaths deaths;
  deaths.add(lost_peer(2), at(1));
  CHECK(first_of(deaths) == 2);
  deaths.add(exited(0), at(900));
  CHECK(first_of(deaths) == 0);
  CHECK(deaths.first_cause()->at == at(900));
  deaths.add(lost_peer(1), at(901));
  CHECK(first_of(deaths) == 0);
}

TEST_CASE("deaths: error files tell their times, in whole seconds if they must") {
  SECTION("an earlier one decides") {
    Deaths deaths;
    deaths.add(with_file(exited(2), seconds(105)), at(1));
    deaths.add(with_file(exited(0), seconds(103)), at(1));
    CHECK(first_of(deaths) == 0);
    CHECK(deaths.first_cause()->failure.tied_ranks == Ties{});
  }
  SECTION("the same second decides nothing") {
    Deaths deaths;
    deaths.add(with_file(exited(2), seconds(105)), at(1));
    deaths.add(with_file(exited(0), seconds(105)), at(2));
    CHECK(first_of(deaths) == 2);
  }
  SECTION("a whole second may be any moment of it") {
    Deaths deaths;
    deaths.add(with_file(exited(2), milliseconds(103'500)), at(1));
    deaths.add(with_file(exited(0), seconds(103)), at(2));
    CHECK(first_of(deaths) == 2);
  }
  SECTION("finer ones are taken as they are") {
    Deaths deaths;
    deaths.add(with_file(exited(2), milliseconds(103'500)), at(1));
    deaths.add(with_file(exited(0), milliseconds(103'499)), at(2));
    CHECK(first_of(deaths) == 0);
  }
  SECTION("against none the order counts") {
    Deaths deaths;
    deaths.add(exited(2), at(1));
    deaths.add(with_file(exited(0), seconds(3)), at(2));
    CHECK(first_of(deaths) == 2);
  }
}

TEST_CASE("deaths: seen in one look and not told apart is a tie") {
  Deaths deaths;
  deaths.add(exited(2), at(1));
  deaths.add(killed(0, SIGSEGV), at(1));
  deaths.add(lost_peer(3), at(1));
  deaths.stop_begins(at(1), false);
  deaths.add(exited(1), at(1));
  CHECK(first_of(deaths) == 2);
  CHECK(deaths.first_cause()->failure.tied_ranks == Ties{0});
}

TEST_CASE("deaths: consequences tie with each other, and no more once there is a cause") {
  Deaths deaths;
  deaths.add(lost_peer(2), at(1));
  deaths.add(lost_peer(3), at(1));
  CHECK(deaths.first_cause()->failure.tied_ranks == Ties{3});
  deaths.add(exited(1), at(2));
  deaths.add(exited(0), at(2));
  CHECK(first_of(deaths) == 1);
  CHECK(deaths.first_cause()->failure.tied_ranks == Ties{0});
}

TEST_CASE("deaths: a new first one keeps those that it is not told apart from") {
  Deaths deaths;
  deaths.add(with_file(exited(2), seconds(105)), at(1));
  deaths.add(exited(4), at(1));
  deaths.add(with_file(exited(0), seconds(103)), at(1));
  CHECK(first_of(deaths) == 0);
  CHECK(deaths.first_cause()->failure.tied_ranks == Ties{4});
}

TEST_CASE("deaths: nobody reads ten thousand ties") {
  Deaths deaths;
  for (int rank = 0; rank < 10'000; ++rank) deaths.add(exited(rank), at(1));
  CHECK(deaths.first_cause()->failure.tied_ranks.size() == Deaths::kMostTies);
}

TEST_CASE("deaths: after our stop has begun they are answers to it") {
  SECTION("of a cause that we know") {
    Deaths deaths;
    deaths.add(exited(2), at(1));
    deaths.stop_begins(at(1), false);
    deaths.add(killed(0, SIGSEGV), at(2));
    deaths.add(with_file(exited(1), seconds(3)), at(2));
    CHECK(first_of(deaths) == 2);
  }
  SECTION("that somebody wanted") {
    Deaths deaths;
    deaths.stop_begins(at(1), false);
    deaths.add(killed(0, SIGSEGV), at(2));
    CHECK(first_of(deaths) == -1);
  }
}

TEST_CASE("deaths: if all we have is consequences, one that speaks for itself still counts") {
  Deaths deaths;
  const bool elsewhere = GENERATE(false, true);
  const int before = elsewhere ? -1 : 2;
  if (!elsewhere) deaths.add(lost_peer(2), at(1));
  deaths.stop_begins(at(3000), elsewhere);
  Death asked = killed(3, SIGTERM);
  asked.as_asked = true;
  SECTION("a crash does") {
    deaths.add(killed(1, SIGSEGV), at(3100));
    CHECK(first_of(deaths) == 1);
  }
  SECTION("SIGKILL from somebody else does") {
    deaths.add(killed(1, SIGKILL), at(3100));
    CHECK(first_of(deaths) == 1);
  }
  SECTION("SIGKILL from us doesn't") {
    asked.failure.signal = SIGKILL;
    deaths.add(asked, at(3100));
    CHECK(first_of(deaths) == before);
  }
  SECTION("a code may be its way to obey") {
    deaths.add(exited(1), at(3100));
    deaths.add(asked, at(3100));
    CHECK(first_of(deaths) == before);
  }
  SECTION("an error file that is older than the stop does, however it died") {
    deaths.add(with_file(asked, seconds(996), milliseconds(1'000'100)), at(3100));
    CHECK(first_of(deaths) == 3);
  }
  SECTION("one that may be younger doesn't") {
    deaths.add(with_file(asked, seconds(999), milliseconds(1'000'100)), at(3100));
    CHECK(first_of(deaths) == before);
  }
  SECTION("another consequence doesn't") {
    Death crash = lost_peer(1);
    crash.failure.signal = SIGABRT;
    deaths.add(crash, at(3100));
    CHECK(first_of(deaths) == before);
  }
}
