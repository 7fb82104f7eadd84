// To be preloaded: name lookups that take a minute, as where no name server answers. Each first
// makes the file `lookup` in TMPDIR.
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int getaddrinfo(const char* restrict name, const char* restrict service,
                const struct addrinfo* restrict hints, struct addrinfo** restrict result) {
  (void)name, (void)service, (void)hints, (void)result;
  char path[4096];
  const char* const folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/lookup", folder != NULL ? folder : "/tmp");
  close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  // A signal ends no real lookup either.
  struct timespec left = {60, 0};
  while (nanosleep(&left, &left) != 0) continue;
  return EAI_AGAIN;
}
