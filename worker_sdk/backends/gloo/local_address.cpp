#include "worker_sdk/backends/gloo/local_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "worker_sdk/backends/seam.h"

namespace ddp::backends {
namespace {

struct HostAddress {
  std::string interface;
  std::string literal;
  bool loopback;
  bool v6;
};

std::string literal_of(const sockaddr* address) {
  const socklen_t length =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  char text[NI_MAXHOST] = "";
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

// The addresses of this host that are up, IPv4 first. Link-local IPv6 is left out: it means nothing
// to a peer.
std::vector<HostAddress> host_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<HostAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string literal = literal_of(entry->ifa_addr);
    if (literal.empty() || literal.find('%') != std::string::npos) continue;
    result.push_back(HostAddress{entry->ifa_name, literal, (entry->ifa_flags & IFF_LOOPBACK) != 0,
                                 family == AF_INET6});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const HostAddress& a, const HostAddress& b) { return a.v6 < b.v6; });
  return result;
}

std::vector<std::string> resolve_own_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(name, nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  std::vector<std::string> result;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    result.push_back(literal_of(entry->ai_addr));
  }
  return result;
}

std::string address_of_interface(const std::string& name,
                                 const std::vector<HostAddress>& addresses) {
  for (const HostAddress& address : addresses) {
    if (address.interface == name) return address.literal;
  }
  throw Failure(DDP_UNAVAILABLE, "GLOO_SOCKET_IFNAME names the interface '" + name +
                                     "', which has no address here or is down");
}

void require_literal(const std::string& address) {
  in6_addr ignored{};
  if (inet_pton(AF_INET, address.c_str(), &ignored) == 1) return;
  if (inet_pton(AF_INET6, address.c_str(), &ignored) == 1) return;
  throw Failure(DDP_INVALID_USE,
                "the local address '" + address + "' is no literal IPv4 or IPv6 address");
}

}  // namespace

std::string choose_local_address(const std::string& wanted, bool one_host) {
  if (!wanted.empty()) {
    require_literal(wanted);
    return wanted;
  }
  const std::vector<HostAddress> addresses = host_addresses();
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && interface[0] != '\0') {
    return address_of_interface(interface, addresses);
  }
  if (one_host) return "127.0.0.1";
  const std::vector<std::string> resolved = resolve_own_name();
  for (const HostAddress& address : addresses) {
    const bool named =
        std::find(resolved.begin(), resolved.end(), address.literal) != resolved.end();
    if (named && !address.loopback) return address.literal;
  }
  for (const HostAddress& address : addresses) {
    if (!address.loopback) return address.literal;
  }
  throw Failure(DDP_UNAVAILABLE,
                "this host has no address that ranks on other hosts could reach: all its "
                "interfaces but loopback are down or have none");
}

}  // namespace ddp::backends
