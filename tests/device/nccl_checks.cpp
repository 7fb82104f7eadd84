#include "tests/device/nccl_checks.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace ddp::test {
namespace {

template <class T>
std::vector<T> values_of(int rank, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>((i + static_cast<size_t>(rank)) % 3 + 1);
  }
  return values;
}

template <class T>
T expected(ddp_reduce_op op, int ranks, size_t index) {
  double result = static_cast<double>((index % 3) + 1);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = static_cast<double>((index + static_cast<size_t>(rank)) % 3 + 1);
    if (op == DDP_SUM || op == DDP_AVG) result += next;
    if (op == DDP_PRODUCT) result *= next;
    if (op == DDP_MIN) result = std::min(result, next);
    if (op == DDP_MAX) result = std::max(result, next);
  }
  return static_cast<T>(op == DDP_AVG ? result / ranks : result);
}

template <class T>
void check_type(Group& group, const Gpu& gpu, int rank, int ranks, ddp_dtype dtype,
                RankReport& report) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{100'003}}) {
    for (const ddp_reduce_op op : {DDP_SUM, DDP_PRODUCT, DDP_MIN, DDP_MAX, DDP_AVG}) {
      const bool whole = dtype != DDP_FLOAT32 && dtype != DDP_FLOAT64;
      if (op == DDP_AVG && whole && ranks > 1) continue;  // NCCL rounds as it likes.
      const GpuArray<T> input(gpu, values_of<T>(rank, count));
      const GpuArray<T> output(gpu, std::vector<T>(count, T{77}));
      for (void* target : {output.get(), input.get()}) {
        if (group.all_reduce(dtype, op, input.get(), target, count) != DDP_OK) {
          return report.fail(group.error().message);
        }
      }
      const std::vector<T> apart = output.values();
      const std::vector<T> in_place = input.values();
      for (size_t i = 0; i < count; ++i) {
        const double wanted = static_cast<double>(expected<T>(op, ranks, i));
        const bool right = static_cast<double>(apart[i]) == Approx(wanted) &&
                           static_cast<double>(in_place[i]) == Approx(wanted);
        if (!right) return report.fail("wrong: type " + std::to_string(dtype));
      }
    }
  }
}

}  // namespace

std::string nccl_plugin_file() {
  const char* moved = std::getenv("DDP_NCCL_PLUGIN");
  return moved != nullptr ? moved : DDP_NCCL_PLUGIN;
}

std::vector<RankOutcome> run_nccl_ranks(int ranks, int64_t timeout_ms, const NcclBody& body) {
  const ScratchFolder folder;
  return run_ranks(ranks, [&](int rank, RankReport& report) {
    const Plugin plugin(nccl_plugin_file());
    const FileStore store(folder.path());
    const Gpu gpu(0);
    Group group(plugin.table(), store, {rank, ranks, 0, timeout_ms});
    if (!group.made()) return report.fail(group.error().message);
    body(group, gpu, rank, report);
  });
}

void in_nccl_group(int ranks, const NcclBody& body) {
  const auto outcomes = run_nccl_ranks(
      ranks, 60'000, [&](Group& group, const Gpu& gpu, int rank, RankReport& report) {
        body(group, gpu, rank, report);
        if (group.barrier() != DDP_OK) report.fail(group.error().message);
      });
  for (const RankOutcome& outcome : outcomes) {
    CHECK(std::string(outcome.report.wrong) == "");
    CHECK(outcome.report.finished);
    CHECK_FALSE(outcome.hung);
  }
}

void check_all_reduce(int ranks) {
  in_nccl_group(ranks, [ranks](Group& group, const Gpu& gpu, int rank, RankReport& report) {
    check_type<float>(group, gpu, rank, ranks, DDP_FLOAT32, report);
    check_type<double>(group, gpu, rank, ranks, DDP_FLOAT64, report);
    check_type<int32_t>(group, gpu, rank, ranks, DDP_INT32, report);
    check_type<int64_t>(group, gpu, rank, ranks, DDP_INT64, report);
    check_type<uint8_t>(group, gpu, rank, ranks, DDP_UINT8, report);
    const GpuArray<double> scaled(gpu, std::vector<double>(10, 2.0));
    group.set_premul(rank + 0.5);
    if (group.all_reduce(DDP_FLOAT64, DDP_PREMUL_SUM, scaled.get(), scaled.get(), 10) != DDP_OK) {
      return report.fail(group.error().message);
    }
    // 2 * (0.5 + 1.5 + …)
    if (scaled.values()[9] != Approx(ranks * ranks)) report.fail("premul_sum is wrong");
    const GpuArray<uint8_t> flags(gpu, {uint8_t(rank == 0), 0, 1});
    if (group.all_reduce(DDP_BOOL, DDP_SUM, flags.get(), flags.get(), 3) != DDP_OK) {
      return report.fail(group.error().message);
    }
    if (flags.values() != std::vector<uint8_t>{1, 0, 1}) report.fail("booleans are not or-ed");
  });
}

void check_in_stream(int ranks) {
  in_nccl_group(ranks, [ranks](Group& group, const Gpu& gpu, int rank, RankReport& report) {
    constexpr size_t kCount = 500'000;
    const GpuArray<float> data(gpu, std::vector<float>(kCount, static_cast<float>(rank + 1)));
    void* stream = gpu.make_stream();
    group.set_stream(stream);
    float wanted = 0;
    for (int other = 1; other <= ranks; ++other) wanted += static_cast<float>(other);
    // Two in a row: the second must see the result of the first.
    for (int i = 0; i < 2; ++i) {
      if (group.all_reduce(DDP_FLOAT32, DDP_SUM, data.get(), data.get(), kCount) != DDP_OK) {
        report.fail(group.error().message);
      }
    }
    const auto settled = [&] { return group.poll() != DDP_IN_PROGRESS; };
    if (!wait_until(settled) || group.status() != DDP_OK) report.fail("poll reports an error");
    gpu.synchronize(stream);
    const float twice = wanted * static_cast<float>(ranks);
    for (const float value : data.values()) {
      if (value == twice) continue;
      report.fail("wrong after two calls on a stream");
      break;
    }
    group.set_stream(nullptr);
    gpu.destroy_stream(stream);
  });
}

void check_broadcast(int ranks) {
  in_nccl_group(ranks, [ranks](Group& group, const Gpu& gpu, int rank, RankReport& report) {
    for (int root = 0; root < ranks; ++root) {
      // A type that NCCL has no arithmetic for: a broadcast needs none.
      const auto mine = static_cast<int16_t>(rank * 100 + root);
      const GpuArray<int16_t> data(gpu, std::vector<int16_t>(3001, mine));
      if (group.broadcast(DDP_INT16, root, data.get(), data.get(), 3001) != DDP_OK) {
        return report.fail(group.error().message);
      }
      const auto theirs = static_cast<int16_t>(root * 100 + root);
      if (data.values() != std::vector<int16_t>(3001, theirs)) report.fail("not the root's data");
    }
  });
}

void check_refusals(int ranks) {
  in_nccl_group(ranks, [](Group& group, const Gpu& gpu, int, RankReport& report) {
    std::vector<float> host(4, 1.0f);
    const GpuArray<float> device(gpu, host);
    const auto refused = [&](ddp_dtype dtype, ddp_reduce_op op, const void* input, void* output,
                             const char* word) {
      const ddp_status status = group.all_reduce(dtype, op, input, output, 4);
      if (status != DDP_INVALID_USE) report.fail("status " + std::to_string(status));
      if (std::string(group.error().message).find(word) == std::string::npos) {
        report.fail(std::string("message without '") + word + "': " + group.error().message);
      }
    };
    refused(DDP_FLOAT32, DDP_SUM, host.data(), host.data(), "host memory");
    refused(DDP_FLOAT32, DDP_SUM, device.get(), host.data(), "host memory");
    refused(DDP_INT16, DDP_SUM, device.get(), device.get(), "int16");
    refused(DDP_INT32, DDP_BXOR, device.get(), device.get(), "bxor");
    refused(DDP_INT32, DDP_PREMUL_SUM, device.get(), device.get(), "premul_sum");
    refused(DDP_BOOL, DDP_AVG, device.get(), device.get(), "avg");
    refused(DDP_FLOAT32, DDP_SUM, nullptr, device.get(), "null");
  });
}

}  // namespace ddp::test
