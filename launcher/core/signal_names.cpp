#include "launcher/core/signal_names.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace ddp::launcher {

namespace {

struct Named {
  std::int32_t number;
  const char* name;
};
constexpr std::array kNames = {
    Named{SIGHUP, "SIGHUP"},       Named{SIGINT, "SIGINT"},   Named{SIGQUIT, "SIGQUIT"},
    Named{SIGILL, "SIGILL"},       Named{SIGTRAP, "SIGTRAP"}, Named{SIGABRT, "SIGABRT"},
    Named{SIGBUS, "SIGBUS"},       Named{SIGFPE, "SIGFPE"},   Named{SIGKILL, "SIGKILL"},
    Named{SIGUSR1, "SIGUSR1"},     Named{SIGSEGV, "SIGSEGV"}, Named{SIGUSR2, "SIGUSR2"},
    Named{SIGPIPE, "SIGPIPE"},     Named{SIGALRM, "SIGALRM"}, Named{SIGTERM, "SIGTERM"},
    Named{SIGCHLD, "SIGCHLD"},     Named{SIGCONT, "SIGCONT"}, Named{SIGSTOP, "SIGSTOP"},
    Named{SIGTSTP, "SIGTSTP"},     Named{SIGTTIN, "SIGTTIN"}, Named{SIGTTOU, "SIGTTOU"},
    Named{SIGURG, "SIGURG"},       Named{SIGXCPU, "SIGXCPU"}, Named{SIGXFSZ, "SIGXFSZ"},
    Named{SIGVTALRM, "SIGVTALRM"}, Named{SIGPROF, "SIGPROF"}, Named{SIGWINCH, "SIGWINCH"},
    Named{SIGIO, "SIGIO"},         Named{SIGPWR, "SIGPWR"},   Named{SIGSYS, "SIGSYS"},
    Named{SIGSTKFLT, "SIGSTKFLT"},
};

}  // namespace

std::optional<std::int32_t> signal_number(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  if (name.compare(0, 3, "SIG") != 0) {
    name.insert(0, "SIG");
  }
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const Named& named) { return named.name == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->number);
}

std::string signal_name(std::int32_t signal) {
  for (const Named& named : kNames) {
    if (named.number == signal) {
      return named.name;
    }
  }
  return "signal " + std::to_string(signal);
}

}  // namespace ddp::launcher
