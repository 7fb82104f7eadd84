#include <utility>

#include <ddp/error.hpp>
#include <ddp/version.hpp>

namespace ddp {
inline namespace v1 {

// Out of line, so that each class has one type_info in the whole process and catch works across
// libraries.
Error::~Error() = default;
Timeout::~Timeout() = default;
PeerLost::~PeerLost() = default;
Mismatch::~Mismatch() = default;
InvalidUse::~InvalidUse() = default;
Unavailable::~Unavailable() = default;

PeerLost::PeerLost(int rank, std::string host, const std::string& message)
    : Error(message), rank_(rank), host_(std::move(host)) {}

const char* version() noexcept {
  return DDP_VERSION;
}

}  // namespace v1
}  // namespace ddp
