#include "rendezvous/core/first_bytes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ddp::rendezvous {
namespace {

constexpr std::string_view kTcpstoreC{"\x00\xCE\xF7\x85\x3C", 5};
constexpr std::string_view kHttp = "GET ";
constexpr std::string_view kTls = "\x16\x03";
constexpr unsigned char kLastLegacyCode = 0x0B;

Protocol match(std::string_view bytes, std::string_view magic, Protocol protocol) {
  const std::size_t common = std::min(bytes.size(), magic.size());
  if (bytes.substr(0, common) != magic.substr(0, common)) return Protocol::unknown;
  return common == magic.size() ? protocol : Protocol::undecided;
}

}  // namespace

Protocol recognise_protocol(std::string_view bytes) {
  if (bytes.empty()) return Protocol::undecided;
  const auto first = static_cast<unsigned char>(bytes.front());
  if (first == 0) {
    // A legacy SET begins with 00 too, but is at least nine bytes long: waiting for five is safe.
    const Protocol c = match(bytes, kTcpstoreC, Protocol::tcpstore_c);
    if (c != Protocol::unknown) return c;
    return bytes.size() < kTcpstoreC.size() ? Protocol::undecided : Protocol::tcpstore_legacy;
  }
  if (first <= kLastLegacyCode) return Protocol::tcpstore_legacy;
  for (const auto& [magic, protocol] :
       {std::pair{kAgentMagic, Protocol::agent}, std::pair{kHttp, Protocol::http},
        std::pair{kTls, Protocol::tls}}) {
    const Protocol found = match(bytes, magic, protocol);
    if (found != Protocol::unknown) return found;
  }
  return Protocol::unknown;
}

}  // namespace ddp::rendezvous
