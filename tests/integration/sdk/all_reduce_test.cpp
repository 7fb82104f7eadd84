// What all_reduce, broadcast and barrier promise between processes of one host.
#include <catch2/catch.hpp>
#include <cstring>
#include <ddp/ddp.hpp>
#include <numeric>
#include <type_traits>
#include <vector>

#include "tests/integration/sdk/ranks.h"

namespace ddp::testing {
namespace {

// Values whose sum depends on the order in which they are added.
template <typename T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  std::uint64_t state = 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(rank + 1);
  for (T& value : values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto bits = static_cast<std::int64_t>(state >> 11);
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(bits % 2000003) / static_cast<T>(977) - static_cast<T>(1000);
    } else {
      value = static_cast<T>(bits);
    }
  }
  return values;
}

// One process, in rank order: what the ranks must arrive at, bit for bit.
template <typename T>
std::vector<T> serial_sum(int ranks, std::size_t count) {
  std::vector<T> sum = values_of<T>(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<T> next = values_of<T>(rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        sum[i] = static_cast<T>(static_cast<U>(static_cast<U>(sum[i]) + static_cast<U>(next[i])));
      } else {
        sum[i] = sum[i] + next[i];
      }
    }
  }
  return sum;
}

template <typename T>
std::string check_sums(ProcessGroup& group, const std::vector<std::size_t>& sizes) {
  for (const std::size_t bytes : sizes) {
    const std::size_t count = bytes / sizeof(T);
    std::vector<T> data = values_of<T>(group.rank(), count);
    group.all_reduce(data);
    const std::vector<T> expected = serial_sum<T>(group.world_size(), count);
    if (count > 0 && std::memcmp(data.data(), expected.data(), count * sizeof(T)) != 0) {
      return "wrong bits for " + std::to_string(count) + " elements of " +
             std::to_string(sizeof(T)) + " bytes";
    }
  }
  return "ok";
}

void require_all(const std::vector<Outcome>& outcomes, const std::string& text) {
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.text == text);
    CHECK(outcome.exit_code == 0);
  }
}

constexpr std::size_t kSmall = 8192;  // the size at which the algorithm changes
const std::vector<std::size_t> kSizes{
    0,      8,           24,      1000,        kSmall - 8, kSmall,          kSmall + 8,
    65'536, 524'288 - 8, 524'288, 524'288 + 8, 1U << 20,   (1U << 20) + 40, 3'000'000};

TEST_CASE("shm: all_reduce gives the bits of one process that adds in rank order") {
  const int ranks = GENERATE(1, 2, 3, 4);
  const StoreServer store;
  Ranks job(ranks, store, [](int) {
    ProcessGroup group = init_process_group();
    for (const std::string& result :
         {check_sums<float>(group, kSizes), check_sums<double>(group, kSizes),
          check_sums<std::int32_t>(group, kSizes)}) {
      if (result != "ok") return result;
    }
    return group.backend();
  });
  require_all(job.wait(), ranks == 1 ? "alone" : "shm");
}

TEST_CASE("shm: every element type travels") {
  const StoreServer store;
  Ranks job(3, store, [](int) {
    ProcessGroup group = init_process_group();
    const std::vector<std::size_t> sizes{8, kSmall, 100'008};
    for (const std::string& result :
         {check_sums<std::uint8_t>(group, sizes), check_sums<std::int8_t>(group, sizes),
          check_sums<std::int16_t>(group, sizes), check_sums<std::uint32_t>(group, sizes),
          check_sums<std::int64_t>(group, sizes), check_sums<std::uint64_t>(group, sizes)}) {
      if (result != "ok") return result;
    }
    bool flags[3] = {group.rank() == 1, false, true};
    group.all_reduce(flags, 3, ReduceOp::min);
    return std::string(!flags[0] && !flags[1] && flags[2] ? "ok" : "wrong flags");
  });
  require_all(job.wait(), "ok");
}

TEST_CASE("shm: avg is the sum divided by the number of ranks") {
  const StoreServer store;
  Ranks job(3, store, [](int) {
    ProcessGroup group = init_process_group();
    for (const std::size_t count : {std::size_t{100}, std::size_t{200'001}}) {
      std::vector<float> data = values_of<float>(group.rank(), count);
      group.all_reduce(data, ReduceOp::avg);
      const std::vector<float> sum = serial_sum<float>(3, count);
      for (std::size_t i = 0; i < count; ++i) {
        if (data[i] != sum[i] / 3.0F) return std::string("wrong at ") + std::to_string(i);
      }
    }
    std::vector<std::int32_t> whole{group.rank() == 0 ? -8 : 0, group.rank() == 0 ? 8 : 0};
    group.all_reduce(whole, ReduceOp::avg);
    return std::string(whole == std::vector<std::int32_t>{-2, 2} ? "ok" : "wrong integers");
  });
  require_all(job.wait(), "ok");
}

TEST_CASE("shm: broadcast copies the root's elements to all") {
  const StoreServer store;
  Ranks job(3, store, [](int rank) {
    ProcessGroup group = init_process_group();
    for (int root = 0; root < 3; ++root) {
      for (const std::size_t bytes : kSizes) {
        const std::size_t count = bytes / sizeof(double);
        std::vector<double> data = values_of<double>(rank, count);
        group.broadcast(data, root);
        if (data != values_of<double>(root, count)) {
          return "wrong for root " + std::to_string(root) + ", " + std::to_string(count);
        }
      }
    }
    return std::string("ok");
  });
  require_all(job.wait(), "ok");
}

TEST_CASE("shm: calls of all kinds may follow each other in any order") {
  const StoreServer store;
  Ranks job(4, store, [](int rank) {
    ProcessGroup group = init_process_group();
    std::uint64_t random = 1;  // the same on all ranks
    for (int step = 0; step < 2000; ++step) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t count = step % 50 == 0 ? 150'000 : (random >> 33) % 4000;
      std::vector<std::int64_t> data(count, rank + step);
      switch ((random >> 20) % 3) {
        case 0:
          group.barrier();
          break;
        case 1: {
          const int root = static_cast<int>((random >> 40) % 4);
          group.broadcast(data, root);
          if (data != std::vector<std::int64_t>(count, root + step))
            return std::string("broadcast");
          break;
        }
        default:
          group.all_reduce(data);
          if (data != std::vector<std::int64_t>(count, 6 + 4 * step)) return std::string("sum");
      }
    }
    return std::string("ok");
  });
  require_all(job.wait(std::chrono::seconds(100)), "ok");
}

TEST_CASE("shm: no rank passes a barrier before all have come") {
  const StoreServer store;
  Ranks job(3, store, [](int rank) {
    ProcessGroup group = init_process_group();
    for (int step = 1; step <= 20; ++step) {
      if (rank == step % 3) group.store().set("come" + std::to_string(step), "1");
      if (rank == step % 3) group.store().num_keys();  // answered: the store has the key
      group.barrier();
      if (!group.store().check({"come" + std::to_string(step)})) return std::string("too early");
    }
    return std::string("ok");
  });
  require_all(job.wait(), "ok");
}

TEST_CASE("shm: the launcher's page and node id serve where there are any") {
  const StoreServer store;
  const ControlPageOwner page(2);
  Ranks job(2, store,
            [](int) {
              ProcessGroup group = init_process_group();
              return check_sums<float>(group, kSizes) + " " + group.backend();
            },
            {{"DDP_SHM_FD", std::to_string(page.fd())},
             {"DDP_NODE_ID", "00112233445566778899aabbccddeeff"},
             {"DDP_ROUND", "1:abc"}});
  require_all(job.wait(), "ok shm");
}

TEST_CASE("shm: a closed control page is replaced by one of the ranks' own") {
  const StoreServer store;
  Ranks job(2, store,
            [](int) {
              ProcessGroup group = init_process_group();
              return check_sums<float>(group, kSizes) + " " + group.backend();
            },
            {{"DDP_SHM_FD", "987"}, {"DDP_ROUND", "1:abc"}});
  require_all(job.wait(), "ok shm");
}

TEST_CASE("shm: a second group of the same processes is a group of its own") {
  const StoreServer store;
  Ranks job(2, store, [](int) {
    ProcessGroup first = init_process_group();
    ProcessGroup second = init_process_group();
    std::vector<int> data{1};
    first.all_reduce(data);
    second.all_reduce(data);
    first.all_reduce(data);
    return std::to_string(data[0]);
  });
  require_all(job.wait(), "8");
}

TEST_CASE("shm: nothing of a group's memory stays behind in /proc") {
  const StoreServer store;
  Ranks job(2, store, [](int) {
    ProcessGroup group = init_process_group();
    for (int fd = 3; fd < 64; ++fd) {
      char target[256] = {};
      const std::string path = "/proc/self/fd/" + std::to_string(fd);
      if (::readlink(path.c_str(), target, sizeof target - 1) > 0 &&
          std::string(target).find("memfd") != std::string::npos) {
        return path + " is " + target;
      }
    }
    return std::string("ok");
  });
  require_all(job.wait(), "ok");
}

}  // namespace
}  // namespace ddp::testing
