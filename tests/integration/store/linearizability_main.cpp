// Many clients at a few names of one store, connections cut at random bytes, the store stopped and
// continued; then every history must be one that a single client could have seen.
//
//   store_linearizability PATH_OF_DDPRENDEZVOUS [OPERATIONS [SEED]]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/store/actor.h"
#include "tests/integration/store/history.h"
#include "tests/integration/store/store_process.h"

namespace ddp::store_test {
namespace {

using History = std::vector<Operation>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as it should be: " + what);
}

// Stops the store for some milliseconds, again and again; returns how often.
int disturb(const StoreProcess& store, const std::atomic<bool>& over, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto some_ms = [&](unsigned from, unsigned to) {
    std::this_thread::sleep_for(std::chrono::milliseconds(from + random() % (to - from)));
  };
  int times = 0;
  while (!over) {
    some_ms(100, 400);
    store.pause();
    some_ms(5, 30);
    store.resume();
    ++times;
  }
  return times;
}

// Changes one answer to what nobody can have been told. False if this one says nothing.
bool falsify(Operation& operation) {
  if (operation.outcome != Outcome::answered) return false;
  switch (operation.kind) {
    case Kind::get:
    case Kind::compare_set:
      operation.value += '?';
      return true;
    case Kind::add:
    case Kind::length:
    case Kind::pop:
      operation.count += 1'000'003;
      return true;
    case Kind::check:
    case Kind::remove:
      operation.count = 2;
      return true;
    default:
      return false;
  }
}

void sort_by_invocation(History& history) {
  std::sort(history.begin(), history.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
}

// The checker must find what is planted in histories that it has passed.
void check_the_checker(const std::map<std::int64_t, History>& histories, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int planted = 0;
  for (const auto& [name, history] : histories) {
    if (planted == 30) break;
    History changed = history;
    sort_by_invocation(changed);
    // An early one: to prove that no order will do takes the longer the more can be reordered.
    if (!falsify(changed[random() % std::min<std::size_t>(changed.size(), 40)])) continue;
    expect(!is_linearizable(changed), "a planted answer was not found");
    ++planted;
  }
  expect(planted >= std::min<int>(30, static_cast<int>(histories.size()) / 3),
         "enough answers to falsify");
}

void show(std::int64_t name, History history) {
  std::cerr << "VIOLATION at name " << name << ":\n";
  sort_by_invocation(history);
  for (const Operation& operation : history) std::cerr << "  " << text_of(operation) << '\n';
}

int run(const std::string& program, std::int64_t operations, std::uint64_t seed) {
  using rendezvous::StoreDialect;
  StoreProcess store(program);
  Stage stage;
  stage.port = store.port();
  stage.operations = operations;
  std::vector<std::unique_ptr<Actor>> actors;
  for (int i = 0; i < 10; ++i) {
    const auto dialect = i < 7 ? StoreDialect::c : i == 7 ? StoreDialect::b : StoreDialect::a;
    actors.push_back(std::make_unique<Actor>(stage, dialect, seed, i));
  }
  const auto start = Clock::now();
  std::atomic<bool> over = false;
  int pauses = 0;
  std::thread disturber([&] { pauses = disturb(store, over, seed); });
  std::vector<std::thread> threads;
  std::atomic<int> broken = 0;
  for (const auto& actor : actors) {
    threads.emplace_back([&] {
      try {
        actor->play();
      } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        ++broken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  disturber.join();
  const double played = seconds_since(start);
  expect(broken == 0, "clients that could go on to the end");

  std::map<std::int64_t, History> histories;
  Actor::Counts counts;
  std::map<Kind, int> answered;
  for (const auto& actor : actors) {
    counts.half_sent += actor->counts().half_sent;
    counts.unanswered += actor->counts().unanswered;
    counts.closed += actor->counts().closed;
    for (const auto& [name, operation] : actor->record()) {
      histories[name].push_back(operation);
      if (operation.outcome == Outcome::answered) ++answered[operation.kind];
    }
  }
  int violations = 0;
  std::size_t total = 0;
  for (const auto& [name, history] : histories) {
    total += history.size();
    if (is_linearizable(history)) continue;
    if (violations++ == 0) show(name, history);
  }
  std::cout << total << " operations on " << histories.size() << " names in " << played
            << " s, checked after " << seconds_since(start) << " s; seed " << seed << "\n"
            << counts.half_sent << " connections cut within a request, " << counts.unanswered
            << " before the answer, " << counts.closed << " closed by the store, " << pauses
            << " pauses\n"
            << violations << " violations" << std::endl;
  if (violations > 0) return 1;
  expect(counts.half_sent > 0 && counts.unanswered > 0 && counts.closed > 0, "cut connections");
  expect(pauses > 0, "pauses of the store");
  for (int kind = 0; kind <= static_cast<int>(Kind::not_passed); ++kind) {
    expect(answered[static_cast<Kind>(kind)] > 0, "operations of kind " + std::to_string(kind));
  }
  check_the_checker(histories, seed);
  expect(store.end() == 0, "a store that ends with 0");
  return 0;
}

}  // namespace
}  // namespace ddp::store_test

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  if (argc < 2) return 2;
  const std::int64_t operations = argc > 2 ? std::atoll(argv[2]) : 100'000;
  const std::uint64_t seed =
      argc > 3 ? std::strtoull(argv[3], nullptr, 10) : std::random_device{}();
  try {
    return ddp::store_test::run(argv[1], operations, seed);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "; seed " << seed << '\n';
    return 1;
  }
}
