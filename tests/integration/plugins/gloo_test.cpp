#include <catch2/catch.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "tests/integration/plugins/plugin.h"
#include "tests/integration/plugins/rank_processes.h"

namespace {

using namespace ddp::test;

using GroupBody = std::function<void(Group& group, int rank, RankReport& report)>;

// Runs `body` in a Gloo group of `ranks` processes, and requires that all of it went well.
void in_group(int ranks, const GroupBody& body) {
  const ScratchFolder folder;
  const auto outcomes = run_ranks(ranks, [&](int rank, RankReport& report) {
    const Plugin plugin(DDP_GLOO_PLUGIN);
    const FileStore store(folder.path());
    Group group(plugin.table(), store, {rank, ranks});
    if (!group.made()) return report.fail(group.error().message);
    body(group, rank, report);
    if (group.barrier() != DDP_OK) report.fail("the last barrier failed");
  });
  for (const RankOutcome& outcome : outcomes) {
    CHECK(std::string(outcome.report.wrong) == "");
    CHECK(outcome.report.finished);
    CHECK_FALSE(outcome.hung);
  }
}

template <class T>
T element(int rank, size_t index) {
  return static_cast<T>((index + static_cast<size_t>(rank)) % 3 + 1);
}

template <class T>
T expected(ddp_reduce_op op, int ranks, size_t index) {
  T result = element<T>(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const T next = element<T>(rank, index);
    if (op == DDP_SUM || op == DDP_AVG) result = static_cast<T>(result + next);
    if (op == DDP_PRODUCT) result = static_cast<T>(result * next);
    if (op == DDP_MIN) result = std::min(result, next);
    if (op == DDP_MAX) result = std::max(result, next);
  }
  return op == DDP_AVG ? static_cast<T>(result / static_cast<T>(ranks)) : result;
}

template <class T>
void check_type(Group& group, int rank, int ranks, ddp_dtype dtype, RankReport& report) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}, size_t{70'001}}) {
    for (const ddp_reduce_op op : {DDP_SUM, DDP_AVG, DDP_PRODUCT, DDP_MIN, DDP_MAX}) {
      std::vector<T> input(count + 1);
      for (size_t i = 0; i < count; ++i) input[i] = element<T>(rank, i);
      std::vector<T> output(count + 1, T{77});
      for (T* target : {output.data(), input.data()}) {
        if (group.all_reduce(dtype, op, input.data(), target, count) != DDP_OK) {
          return report.fail(group.error().message);
        }
        for (size_t i = 0; i < count; ++i) {
          if (target[i] == expected<T>(op, ranks, i)) continue;
          return report.fail("type " + std::to_string(dtype) + " op " + std::to_string(op) +
                             " count " + std::to_string(count) + ": wrong at " + std::to_string(i));
        }
      }
      if (output[count] != T{77}) report.fail("wrote past the end");
    }
  }
}

}  // namespace

TEST_CASE("gloo: all_reduce is right for 1 to 4 ranks, every type, operation and size") {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    CAPTURE(ranks);
    in_group(ranks, [ranks](Group& group, int rank, RankReport& report) {
      check_type<float>(group, rank, ranks, DDP_FLOAT32, report);
      check_type<double>(group, rank, ranks, DDP_FLOAT64, report);
      check_type<int8_t>(group, rank, ranks, DDP_INT8, report);
      check_type<uint8_t>(group, rank, ranks, DDP_UINT8, report);
      check_type<int16_t>(group, rank, ranks, DDP_INT16, report);
      check_type<int32_t>(group, rank, ranks, DDP_INT32, report);
      check_type<uint32_t>(group, rank, ranks, DDP_UINT32, report);
      check_type<int64_t>(group, rank, ranks, DDP_INT64, report);
      check_type<uint64_t>(group, rank, ranks, DDP_UINT64, report);
    });
  }
}

TEST_CASE("gloo: floats are added in rank order, so every rank gets the same bits, in any size") {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    in_group(ranks, [ranks](Group& group, int rank, RankReport& report) {
      // The last size travels in several pieces.
      for (const size_t count : {size_t{1}, size_t{5}, size_t{4'099}, size_t{1'200'003}}) {
        std::vector<std::vector<float>> all(static_cast<size_t>(ranks));
        std::mt19937 random(static_cast<unsigned>(count));
        std::uniform_real_distribution<float> draw(-1e6f, 1e6f);
        for (auto& values : all) {
          values.resize(count);
          for (float& value : values) value = draw(random);
        }
        std::vector<float> mine = all[static_cast<size_t>(rank)];
        if (group.all_reduce(DDP_FLOAT32, DDP_SUM, mine.data(), mine.data(), count) != DDP_OK) {
          return report.fail(group.error().message);
        }
        std::vector<float> serial = all[0];
        for (size_t other = 1; other < all.size(); ++other) {
          for (size_t i = 0; i < count; ++i) serial[i] += all[other][i];
        }
        if (std::memcmp(mine.data(), serial.data(), count * sizeof(float)) != 0) {
          report.fail("other bits for " + std::to_string(count) + " elements");
        }
      }
    });
  }
}

TEST_CASE("gloo: premul_sum scales each rank's part by its own factor") {
  in_group(3, [](Group& group, int rank, RankReport& report) {
    const std::vector<float> input(100, 2.0f);
    std::vector<float> output(100);
    group.set_premul(rank + 0.5);
    if (group.all_reduce(DDP_FLOAT32, DDP_PREMUL_SUM, input.data(), output.data(), 100) != DDP_OK) {
      return report.fail(group.error().message);
    }
    if (output[99] != 9.0f) report.fail("not 2 * (0.5 + 1.5 + 2.5)");
    if (input[99] != 2.0f) report.fail("the input was changed");
  });
}

TEST_CASE("gloo: what makes no sense for a type is refused in words, and the group lives on") {
  in_group(2, [](Group& group, int, RankReport& report) {
    std::vector<float> data(4, 1.0f);
    const auto refused = [&](ddp_dtype dtype, ddp_reduce_op op, const void* input) {
      const ddp_status status = group.all_reduce(dtype, op, input, data.data(), 4);
      if (status != DDP_INVALID_USE) report.fail("status " + std::to_string(status));
      if (group.error().message[0] == '\0') report.fail("no message");
    };
    refused(DDP_FLOAT32, DDP_BXOR, data.data());
    refused(DDP_INT32, DDP_PREMUL_SUM, data.data());
    refused(DDP_FLOAT16, DDP_SUM, data.data());
    refused(static_cast<ddp_dtype>(15), DDP_SUM, data.data());
    refused(DDP_FLOAT32, static_cast<ddp_reduce_op>(15), data.data());
    refused(DDP_FLOAT32, DDP_SUM, nullptr);
    if (group.broadcast(DDP_FLOAT32, 2, data.data(), data.data(), 4) != DDP_INVALID_USE) {
      report.fail("root 2 of 2 ranks was accepted");
    }
  });
}

TEST_CASE("gloo: broadcast gives every rank the root's bytes, for each root") {
  in_group(3, [](Group& group, int rank, RankReport& report) {
    for (int root = 0; root < 3; ++root) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{200'003}}) {
        const std::vector<int64_t> input(count + 1, rank * 10 + root);
        std::vector<int64_t> output(count + 1, -1);
        if (group.broadcast(DDP_INT64, root, input.data(), output.data(), count) != DDP_OK) {
          return report.fail(group.error().message);
        }
        for (size_t i = 0; i < count; ++i) {
          if (output[i] != root * 10 + root) return report.fail("wrong from root");
        }
        if (output[count] != -1) report.fail("wrote past the end");
      }
    }
  });
}

TEST_CASE("gloo: nobody leaves a barrier before the last has come") {
  const ScratchFolder marks;
  in_group(3, [&](Group& group, int rank, RankReport& report) {
    const FileStore store(marks.path());
    for (int late = 0; late < 3; ++late) {
      const std::string mark = "came" + std::to_string(late);
      if (rank == late) store.table()->set(store.table()->self, mark.c_str(), "", 0, nullptr);
      if (group.barrier() != DDP_OK) return report.fail(group.error().message);
      if (!store.has(mark)) report.fail("left before rank " + std::to_string(late) + " came");
    }
  });
}

TEST_CASE("gloo: its sockets are not inherited by programs that the worker starts") {
  in_group(3, [](Group&, int, RankReport& report) {
    int sockets = 0;
    for (int descriptor = 3; descriptor < 256; ++descriptor) {
      int type = 0;
      socklen_t length = sizeof type;
      if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0) continue;
      ++sockets;
      if ((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) report.fail("a socket without CLOEXEC");
    }
    if (sockets < 2) report.fail("found no sockets to look at");
  });
}
