// Runs a program and prints the peak memory in KiB of the largest process among it and those that
// it waited for. peak_memory PROGRAM [ARGUMENTS …]
//
// Small itself: a process inherits the peak of the one that it was forked from, exec or not.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  if (posix_spawnp(&pid, argv[1], &quiet, nullptr, argv + 1, environ) != 0) return 127;
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid || status != 0) return 1;
  std::printf("%ld\n", usage.ru_maxrss);
}
