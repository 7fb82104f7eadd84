// Processes that are nobody's business: each is born with the lowest number that is free, so mostly
// with one that has just been given back, lives for a moment, and records every signal that it
// gets.
//
//   bystanders FIRST COUNT
//
// For its own PID namespace, which it turns over: numbers from FIRST on are used again and again.
// COUNT of them live at a time. Ends at SIGTERM with "born N hurt N numbers A B …" on stdout, and a
// line on stderr for each that was hurt.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

namespace {

volatile sig_atomic_t told_to_end = 0;

void remember_signal(int signal) {
  ::_exit(signal);
}

// A group of its own, so that a signal to a group that isn't there any more would find it too.
[[noreturn]] void stand_by(long lifetime_us) {
  ::setsid();
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, remember_signal);
  const timespec lifetime{0, lifetime_us * 1000};
  ::nanosleep(&lifetime, nullptr);
  ::_exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string before_first = std::to_string(std::atoi(argv[1]) - 1);
  const int wanted = std::atoi(argv[2]);
  const int last_pid = ::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (last_pid < 0) {
    std::perror("ns_last_pid");
    return 77;
  }
  ::signal(SIGTERM, [](int) { told_to_end = 1; });
  long born = 0;
  long hurt = 0;
  int alive = 0;
  std::set<pid_t> numbers;
  while (told_to_end == 0 || alive > 0) {
    while (told_to_end == 0 && alive < wanted) {
      if (::pwrite(last_pid, before_first.data(), before_first.size(), 0) < 0) return 77;
      const pid_t pid = ::fork();
      if (pid == 0) stand_by(10'000 + std::rand() % 90'000);
      if (pid < 0) break;
      ++alive;
      ++born;
      numbers.insert(pid);
    }
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WUNTRACED | WCONTINUED);
    if (ended <= 0) continue;
    if (status != 0) {
      ++hurt;
      std::fprintf(stderr, "bystander %d was hurt: status %#x\n", ended, status);
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) --alive;
  }
  std::printf("born %ld hurt %ld numbers", born, hurt);
  for (const pid_t pid : numbers) std::printf(" %d", pid);
  std::puts("");
  return 0;
}
