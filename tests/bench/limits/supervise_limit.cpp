// The least that a supervisor on one node can do: start N processes; when one fails, end the
// others, reap all, and start them again, or give up and pass the failure on. supervise_limit N
// RESTARTS PROGRAM [ARGUMENTS …]
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

std::vector<pid_t> spawn_all(int count, int generation, char** program) {
  std::vector<pid_t> pids;
  setenv("TORCHELASTIC_RESTART_COUNT", std::to_string(generation).c_str(), 1);
  for (int rank = 0; rank < count; ++rank) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, program[0], nullptr, nullptr, program, environ);
    if (error != 0) {
      std::cerr << "supervise_limit: " << program[0] << ": " << std::strerror(error) << '\n';
      std::exit(127);
    }
    pids.push_back(pid);
  }
  return pids;
}

// 0, or the first failure's status, when none of them is left.
int supervise(std::vector<pid_t> pids) {
  int first_failure = 0;
  while (!pids.empty()) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended < 0 && errno == EINTR) continue;
    pids.erase(std::remove(pids.begin(), pids.end(), ended), pids.end());
    if (status == 0 || first_failure != 0) continue;
    first_failure = status;
    for (const pid_t pid : pids) kill(pid, SIGTERM);
  }
  return first_failure;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || std::atoi(argv[1]) < 1) {
    std::cerr << "usage: supervise_limit N RESTARTS PROGRAM [ARGUMENTS ...]\n";
    return 2;
  }
  const int restarts = std::atoi(argv[2]);
  for (int generation = 0;; ++generation) {
    const int status = supervise(spawn_all(std::atoi(argv[1]), generation, argv + 3));
    if (status == 0) return 0;
    if (generation == restarts)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}
