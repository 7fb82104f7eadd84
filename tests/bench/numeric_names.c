// To be preloaded: addresses are never looked up by name. PyTorch's newer store server asks for the
// name of each client, and a benchmark of it would measure this machine's name server.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>

typedef int Getnameinfo(const struct sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int);

int getnameinfo(const struct sockaddr* restrict address, socklen_t size, char* restrict host,
                socklen_t host_size, char* restrict service, socklen_t service_size, int flags) {
  Getnameinfo* real = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "getnameinfo");
  return real(address, size, host, host_size, service, service_size,
              flags | NI_NUMERICHOST | NI_NUMERICSERV);
}
