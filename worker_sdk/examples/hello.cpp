// The smallest program with the SDK: every rank says where it is, and all add up their numbers.
#include <unistd.h>

#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <ddp/ddp.hpp>

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unnamed host";
}

int hello() {
  ddp::ProcessGroup group = ddp::init_process_group();
  // One string, written at once: ranks that share a terminal don't break into each other's lines.
  std::cout << "rank " + std::to_string(group.rank()) + " of " +
                   std::to_string(group.world_size()) + " on " + host_name() + ", local rank " +
                   std::to_string(group.local_rank()) + ", backend " + group.backend() + "\n"
            << std::flush;

  std::vector<float> sum{static_cast<float>(group.rank())};
  group.all_reduce(sum, ddp::ReduceOp::sum);
  const int world = group.world_size();
  const float expected = static_cast<float>(world * (world - 1) / 2);
  if (sum[0] != expected) {
    std::cerr << "hello: the ranks add up to " + std::to_string(expected) +
                     ", but all_reduce gave rank " + std::to_string(group.rank()) + " " +
                     std::to_string(sum[0]) + "\n";
    return 1;
  }
  group.barrier();
  if (group.is_main()) {
    std::cout << "all_reduce of the ranks: " << sum[0] << ", as it should be" << std::endl;
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return hello();
  } catch (const std::exception& error) {
    std::cerr << std::string("hello: ") + error.what() + "\n";
    return 1;
  }
}
