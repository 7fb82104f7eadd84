#include "launcher/core/signal_roles.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace ddp::launcher::test {

TEST_CASE("signal roles: what ends a job, what warns it, what is no business of it") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    CHECK(role_of_signal(signal) == SignalRole::ends_job);
    CHECK(ending_signal_for_workers(signal, {}) == signal);
  }
  CHECK(role_of_signal(SIGUSR1) == SignalRole::passed_on);
  CHECK(role_of_signal(SIGUSR2) == SignalRole::passed_on);
  CHECK(role_of_signal(SIGTSTP) == SignalRole::suspends);
  CHECK(role_of_signal(SIGCONT) == SignalRole::resumes);
  for (const int signal : {SIGTTIN, SIGTTOU, SIGWINCH, SIGURG}) {
    CHECK(role_of_signal(signal) == SignalRole::nothing);
  }
}

TEST_CASE("signal roles: every other one that would kill ends the job as SIGTERM does") {
  for (const int signal :
       {SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGPWR, SIGIO, SIGSTKFLT, 40, 64}) {
    CHECK(role_of_signal(signal) == SignalRole::ends_job);
    CHECK(ending_signal_for_workers(signal, {}) == SIGTERM);
  }
}

TEST_CASE("signal roles: a fault is left to the process that has it") {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE,
                           SIGXFSZ, SIGKILL, SIGSTOP, SIGCHLD}) {
    CHECK(role_of_signal(signal, {signal}) == SignalRole::not_ours);
  }
}

TEST_CASE("signal roles: a listed one ends the job and reaches workers as itself") {
  for (const int signal : {SIGUSR1, SIGALRM, SIGTSTP, SIGWINCH}) {
    CHECK(role_of_signal(signal, {SIGUSR2, signal}) == SignalRole::ends_job);
    CHECK(ending_signal_for_workers(signal, {SIGUSR2, signal}) == signal);
  }
  CHECK(role_of_signal(SIGTERM, {SIGUSR1}) == SignalRole::ends_job);
  CHECK(role_of_signal(SIGCONT, {SIGCONT}) == SignalRole::resumes);
}

TEST_CASE("signal roles: a closed terminal never means now") {
  CHECK(asks_to_hurry(SIGINT));
  CHECK(asks_to_hurry(SIGTERM));
  CHECK(asks_to_hurry(SIGQUIT));
  CHECK_FALSE(asks_to_hurry(SIGHUP));
  CHECK_FALSE(asks_to_hurry(SIGUSR1));
}

}  // namespace ddp::launcher::test
