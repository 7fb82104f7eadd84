// Times all_reduce of the SDK over one or more back-ends in one job, in turns.
// all_reduce_bench BACKEND[,BACKEND …] BYTES [BYTES …]     (under ddplaunch)
#include <ddp/ddp.hpp>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/all_reduce_loop.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: all_reduce_bench BACKEND[,BACKEND ...] BYTES [BYTES ...]\n";
    return 2;
  }
  try {
    std::vector<ddp::ProcessGroup> groups;
    std::istringstream names(argv[1]);
    for (std::string name; std::getline(names, name, ',');) {
      ddp::InitOptions options;
      options.backend = name;
      groups.push_back(ddp::init_process_group(options));
    }
    std::vector<ddp::bench::Contender> contenders;
    contenders.reserve(groups.size());
    for (ddp::ProcessGroup& group : groups) {
      contenders.push_back(
          {"ddp/" + group.backend(),
           [&group](float* data, std::size_t count) { group.all_reduce(data, count); },
           [&group] { group.barrier(); }});
    }
    ddp::bench::run_contenders(contenders, ddp::bench::sizes_from(argc, argv, 2),
                               groups.front().rank(), groups.front().world_size());
  } catch (const std::exception& error) {
    std::cerr << "all_reduce_bench: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
