// Load for a server of TCPStore's protocol on this host, to measure it.
//
//   store_load PORT legacy|current|echo requests set|get|add CLIENTS SECONDS
//   store_load PORT legacy|current|echo notify WAITERS ROUNDS
//   store_load PORT legacy|current      join RANKS
//
// One line of JSON on stdout.
#include <sys/resource.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tests/bench/store_load/measures.h"

namespace {

using ddp::bench::Dialect;

int usage() {
  std::cerr << "usage: store_load PORT legacy|current|echo requests set|get|add CLIENTS SECONDS | "
               "notify WAITERS ROUNDS | join RANKS\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 4) return usage();
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  ddp::bench::Target target;
  target.port = static_cast<std::uint16_t>(std::stoi(words[0]));
  target.dialect = words[1] == "legacy" ? Dialect::legacy
                   : words[1] == "echo" ? Dialect::echo
                                        : Dialect::current;
  if (words[2] == "requests" && words.size() == 6) {
    ddp::bench::measure_requests(target, words[3], std::stoi(words[4]), std::stod(words[5]));
  } else if (words[2] == "notify" && words.size() == 5) {
    ddp::bench::measure_notify(target, std::stoi(words[3]), std::stoi(words[4]));
  } else if (words[2] == "join" && words.size() == 4) {
    ddp::bench::measure_join(target, std::stoi(words[3]));
  } else {
    return usage();
  }
}
