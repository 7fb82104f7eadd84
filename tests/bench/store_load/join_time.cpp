#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/bench/store_load/measures.h"

namespace ddp::bench {
namespace {

using Clock = std::chrono::steady_clock;

enum class Step { connecting, greeting, joining, counting, waiting, done };

struct Rank {
  Socket socket;
  Socket second;  // legacy clients keep an idle one
  Step step = Step::connecting;
  std::size_t wanted = 0;
  std::size_t have = 0;
  std::array<char, 8> reply{};
};

// All ranks in one loop, each at its own step.
class Crowd {
 public:
  Crowd(const Target& target, int ranks)
      : target_(target),
        requests_(target.dialect),
        name_("/join/" + std::to_string(getpid())),
        ranks_(static_cast<std::size_t>(ranks)) {}

  void run() {
    for (std::uint64_t i = 0; i < ranks_.size(); ++i) begin(i);
    while (passed_ < ranks_.size()) {
      int count = 0;
      const std::uint64_t* const ready = poller_.wait(count);
      for (int i = 0; i < count; ++i) advance(ready[i]);
    }
  }
  [[nodiscard]] int resets() const { return resets_; }

 private:
  void begin(std::uint64_t number) {
    ranks_[number] = Rank();
    ranks_[number].socket = begin_connection(target_);
    poller_.add_writable(ranks_[number].socket, number);
  }

  void again(std::uint64_t number) {
    ++resets_;
    begin(number);
  }

  void ask(Rank& rank, Step step, const Exchange& exchange) {
    rank.step = step;
    rank.wanted = exchange.reply_size;
    rank.have = 0;
    send_all(rank.socket, exchange.request);
  }

  void advance(std::uint64_t number) {
    Rank& rank = ranks_[number];
    if (rank.step == Step::done) return;
    if (rank.step == Step::connecting) return connected(number);
    const ssize_t count =
        recv(rank.socket.get(), rank.reply.data() + rank.have, rank.wanted - rank.have, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return again(number);
    rank.have += static_cast<std::size_t>(count);
    if (rank.have == rank.wanted) answered(rank);
  }

  void connected(std::uint64_t number) {
    Rank& rank = ranks_[number];
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(rank.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return again(number);
    poller_.change_to_readable(rank.socket, number);
    if (target_.dialect == Dialect::legacy) {
      rank.second = begin_connection(target_);
      join(rank);
    } else {
      ask(rank, Step::greeting, requests_.hello());
    }
  }

  void join(Rank& rank) { ask(rank, Step::joining, requests_.add(name_ + "/init", 1)); }

  void answered(Rank& rank) {
    switch (rank.step) {
      case Step::greeting:
        return join(rank);
      case Step::joining:
        return ask(rank, Step::counting, requests_.add(name_ + "/barrier", 1));
      case Step::counting: {
        std::int64_t arrived = 0;
        std::memcpy(&arrived, rank.reply.data(), sizeof(arrived));
        Exchange next = requests_.wait(name_ + "/all");
        const bool last = arrived == static_cast<std::int64_t>(ranks_.size());
        if (last) next.request.insert(0, requests_.set_only(name_ + "/all", "1"));
        return ask(rank, Step::waiting, next);
      }
      default:
        rank.step = Step::done;
        ++passed_;
    }
  }

  Target target_;
  Requests requests_;
  std::string name_;
  std::vector<Rank> ranks_;
  Poller poller_;
  std::size_t passed_ = 0;
  int resets_ = 0;
};

}  // namespace

void measure_join(const Target& target, int ranks) {
  Crowd crowd(target, ranks);
  const auto begin = Clock::now();
  crowd.run();
  std::printf("{\"seconds\": %.6f, \"resets\": %d, \"requests\": %d}\n",
              std::chrono::duration<double>(Clock::now() - begin).count(), crowd.resets(),
              3 * ranks);
}

}  // namespace ddp::bench
