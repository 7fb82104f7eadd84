// The least that a launcher on one node can do: start N processes, wait for all, pass on the first
// failure. spawn_limit N PROGRAM [ARGUMENTS …]
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

// Each child gets its RANK, as workers do; the rest of the environment is inherited.
int spawn_all(int count, char** program) {
  for (int rank = 0; rank < count; ++rank) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, program[0], nullptr, nullptr, program, environ);
    if (error != 0) {
      std::cerr << "spawn_limit: " << program[0] << ": " << std::strerror(error) << '\n';
      return 127;
    }
  }
  return 0;
}

int wait_all() {
  int first_failure = 0;
  int status = 0;
  for (;;) {
    const pid_t pid = wait(&status);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return first_failure;
    if (status != 0 && first_failure == 0) first_failure = 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || std::atoi(argv[1]) < 1) {
    std::cerr << "usage: spawn_limit N PROGRAM [ARGUMENTS ...]\n";
    return 2;
  }
  const int spawned = spawn_all(std::atoi(argv[1]), argv + 2);
  const int waited = wait_all();
  return spawned != 0 ? spawned : waited;
}
