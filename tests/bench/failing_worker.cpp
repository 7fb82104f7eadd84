// A worker whose rank 0 fails once all of them run. Its moments go into a file, a line each, so
// that a benchmark can tell how long its launcher took to act. failing_worker FILE N
//
// Lines are `nanoseconds what rank generation`: "start" by each, "fail" by rank 0 of generation 0.
// Later generations end with 0 at once.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr timespec kBetweenLooks{0, 1'000'000};
constexpr timespec kSettle{0, 30'000'000};  // launchers may still be busy with their own start

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// What each launcher calls a worker's number; GNU parallel counts from 1.
int rank() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  const char* sequence = std::getenv("PARALLEL_SEQ");
  return sequence != nullptr ? std::atoi(sequence) - 1 : 0;
}

int generation() {
  const char* value = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return value != nullptr ? std::atoi(value) : 0;
}

void say(int file, long long at, const char* what, int own_rank, int own_generation) {
  std::array<char, 96> line;
  const int length = std::snprintf(line.data(), line.size(), "%lld %s %d %d\n", at, what, own_rank,
                                   own_generation);
  if (write(file, line.data(), static_cast<std::size_t>(length)) != length) _exit(3);
}

long lines_in(int file) {
  std::array<char, 65536> text;
  const ssize_t length = pread(file, text.data(), text.size(), 0);
  return length <= 0 ? 0 : std::count(text.data(), text.data() + length, '\n');
}

}  // namespace

int main(int argc, char** argv) {
  const long long started = now();
  if (argc != 3) return 2;
  const int file = open(argv[1], O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0) return 3;
  const int own_rank = rank();
  say(file, started, "start", own_rank, generation());
  if (generation() > 0) return 0;
  if (own_rank != 0) {
    for (;;) pause();
  }
  while (lines_in(file) < std::atol(argv[2])) nanosleep(&kBetweenLooks, nullptr);
  nanosleep(&kSettle, nullptr);
  say(file, now(), "fail", 0, 0);
  _exit(1);
}
