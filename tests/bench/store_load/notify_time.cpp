#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/bench/store_load/measures.h"

namespace ddp::bench {
namespace {

using Clock = std::chrono::steady_clock;

// An echo server parks all requests of one size, so the key's length doesn't change.
std::string key_of(int round) {
  std::string digits = std::to_string(round);
  return "/notify/" + std::to_string(getpid()) + "/" + std::string(8 - digits.size(), '0') + digits;
}

void receive_from_all(Poller& poller, const std::vector<Socket>& waiters, std::size_t reply_size) {
  std::vector<std::size_t> left(waiters.size(), reply_size);
  for (std::size_t waiting = waiters.size(); waiting > 0;) {
    int count = 0;
    const std::uint64_t* const ready = poller.wait(count);
    for (int i = 0; i < count; ++i) {
      std::size_t& missing = left[ready[i]];
      missing -= receive_some(waiters[ready[i]], missing);
      waiting -= missing == 0 ? 1 : 0;
    }
  }
}

}  // namespace

void measure_notify(const Target& target, int waiters, int rounds) {
  const Requests requests(target.dialect);
  const Exchange wait = requests.wait(key_of(0));
  const Exchange set{requests.set_only(key_of(0), "1"), 0};
  const Exchange fence = requests.count_keys();
  std::vector<Socket> waiting;
  Poller poller;
  for (int i = 0; i < waiters; ++i) {
    waiting.push_back(open_connection(target, wait, EchoRole::park));
    poller.add_readable(waiting.back(), static_cast<std::uint64_t>(i));
  }
  const Socket setter = open_connection(target, set, EchoRole::release);
  const Socket fencer = open_connection(target, fence, EchoRole::answer);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const std::string key = key_of(round);
    for (const Socket& socket : waiting) send_all(socket, requests.wait(key).request);
    // Answered after the waits have been read, which came before it.
    send_all(fencer, fence.request);
    receive(fencer, fence.reply_size);
    const auto begin = Clock::now();
    send_all(setter, requests.set_only(key, "1"));
    receive_from_all(poller, waiting, wait.reply_size);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  std::printf("{\"microseconds\": %.2f, \"requests\": %d}\n",
              times[static_cast<std::size_t>(rounds / 2)], rounds * (waiters + 2));
}

}  // namespace ddp::bench
