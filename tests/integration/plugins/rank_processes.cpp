#include "tests/integration/plugins/rank_processes.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>
#include <system_error>

namespace ddp::test {
namespace {

using Clock = std::chrono::steady_clock;

class SharedReports {
 public:
  explicit SharedReports(int ranks) : bytes_(sizeof(RankReport) * static_cast<size_t>(ranks)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
    for (int rank = 0; rank < ranks; ++rank) ::new (&at(rank)) RankReport();
  }
  ~SharedReports() { munmap(memory_, bytes_); }
  SharedReports(const SharedReports&) = delete;
  SharedReports& operator=(const SharedReports&) = delete;

  RankReport& at(int rank) { return static_cast<RankReport*>(memory_)[rank]; }

 private:
  size_t bytes_;
  void* memory_ = nullptr;
};

[[noreturn]] void run_body(int rank, const RankBody& body, RankReport& report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body(rank, report);
    report.finished = true;
  } catch (const std::exception& error) {
    report.fail(std::string("exception: ") + error.what());
  }
  std::fflush(nullptr);
  // Not exit(): what the parent registered must not run twice.
  _exit(0);
}

int milliseconds_left(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

RankOutcome await_process(pid_t process, Clock::time_point end) {
  RankOutcome outcome;
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  pollfd waited{descriptor, POLLIN, 0};
  if (poll(&waited, 1, milliseconds_left(end)) != 1) {
    outcome.hung = true;
    kill(process, SIGKILL);
  }
  close(descriptor);
  int status = 0;
  waitpid(process, &status, 0);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

}  // namespace

void RankReport::fail(const std::string& what) {
  if (wrong[0] == '\0') std::snprintf(wrong, sizeof wrong, "%s", what.c_str());
}

void RankReport::record(ddp_status outcome, const ddp_error_v1& error) {
  status = outcome;
  error_rank = error.rank;
  std::snprintf(message, sizeof message, "%s", error.message);
}

std::vector<RankOutcome> run_ranks(int ranks, const RankBody& body,
                                   std::chrono::milliseconds deadline) {
  SharedReports reports(ranks);
  const auto end = Clock::now() + deadline;
  std::vector<pid_t> processes;
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t process = fork();
    if (process == 0) run_body(rank, body, reports.at(rank));
    processes.push_back(process);
  }
  std::vector<RankOutcome> outcomes;
  for (int rank = 0; rank < ranks; ++rank) {
    outcomes.push_back(await_process(processes[static_cast<size_t>(rank)], end));
    outcomes.back().report = reports.at(rank);
  }
  return outcomes;
}

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  while (!condition()) {
    if (Clock::now() >= end) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

std::string state_of(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  // Of a process that ends meanwhile nothing can be read; getline says so, an iterator throws.
  std::string line;
  std::getline(file, line);
  // It follows the name, which is in parentheses and may hold any.
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos ? std::string() : line.substr(name_end + 2, 1);
}

}  // namespace ddp::test
