#include "launcher/io/argument_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {
namespace {

// execve(2), "Limits on size of arguments and environment".
constexpr std::size_t kLongestText = 128 * 1024;  // with its end
constexpr std::size_t kAlwaysAllowed = 128 * 1024;
constexpr std::size_t kNeverAllowed = 6 * 1024 * 1024;
constexpr std::size_t kPartOfStack = 4;

std::size_t limit_of_all() {
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0) return kAlwaysAllowed;
  const std::size_t wanted =
      stack.rlim_cur == RLIM_INFINITY ? kNeverAllowed : stack.rlim_cur / kPartOfStack;
  return std::clamp(wanted, kAlwaysAllowed, kNeverAllowed);
}

std::size_t size_of_all(const std::vector<std::string>& texts) {
  std::size_t size = 0;
  for (const std::string& text : texts) size += text.size() + 1 + sizeof(char*);
  return size;
}

bool is_too_long(const std::string& text) {
  return text.size() + 1 > kLongestText;
}

std::string too_long(const std::string& what, std::size_t size, std::size_t limit) {
  return what + " too long (" + std::to_string(size) + " bytes, limit " + std::to_string(limit) +
         ")";
}

}  // namespace

SpawnRefusal explain_too_long(const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment) {
  const int code = rendezvous::exit_code::kNotExecutable;
  const auto argument = std::find_if(arguments.begin(), arguments.end(), is_too_long);
  if (argument != arguments.end()) {
    return {code, too_long("argument " + std::to_string(argument - arguments.begin()) +
                               " of the worker is",
                           argument->size(), kLongestText - 1) +
                      ": the kernel takes no longer one; pass a file"};
  }
  const auto variable = std::find_if(environment.begin(), environment.end(), is_too_long);
  if (variable != environment.end()) {
    return {code,
            too_long("the worker's variable " + variable->substr(0, variable->find('=')) + " is",
                     variable->size(), kLongestText - 1) +
                ": the kernel takes no longer one"};
  }
  return {code, too_long("argument list", size_of_all(arguments) + size_of_all(environment),
                         limit_of_all()) +
                    ", the environment included: pass a file, or raise the limit (ulimit -s)"};
}

}  // namespace ddp::launcher
