#include "worker_sdk/io/host_facts.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace ddp::sdk {

Environment copy_environment() {
  Environment copy;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string::npos) copy.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return copy;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "an unnamed host";
  return name;
}

std::string system_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat status {};
  std::string network = "unknown";
  if (::stat("/proc/self/ns/net", &status) == 0) network = std::to_string(status.st_ino);
  // Without /proc nothing proves that two processes share a host, so each is a host of its own.
  if (boot.empty()) boot = host_name() + '#' + std::to_string(::getpid());
  return boot + ':' + network;
}

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

}  // namespace ddp::sdk
