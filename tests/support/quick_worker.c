// A worker for tests that start thousands: rank 0 leaves a process behind that is hard to find and
// exits with 7, the others wait for ever.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  const char* rank = getenv("RANK");
  if (rank == NULL || strcmp(rank, "0") != 0) {
    for (;;) pause();
  }
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int fd = 0; fd < 3; ++fd) close(fd);  // or the end of each round would be heard out
    for (;;) pause();
  }
  _exit(7);
}
