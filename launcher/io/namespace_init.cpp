#include "launcher/io/namespace_init.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <span>

#include "launcher/io/children.h"

namespace ddp::launcher {
namespace {

constexpr int kBetweenLooksMs = 20;

int write_file(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const int error = ::write(fd, text, static_cast<std::size_t>(size)) == size ? 0 : errno;
  ::close(fd);
  return error;
}

// Each number stands for itself, so that nothing changes for workers and their files.
int map_users(uid_t user, gid_t group) {
  std::array<char, 64> line;
  std::snprintf(line.data(), line.size(), "%u %u 1\n", user, user);
  if (const int error = write_file("/proc/self/uid_map", line.data())) return error;
  // The kernel's condition for the next one.
  if (const int error = write_file("/proc/self/setgroups", "deny")) return error;
  std::snprintf(line.data(), line.size(), "%u %u 1\n", group, group);
  return write_file("/proc/self/gid_map", line.data());
}

// A /proc that shows this namespace. What is mounted outside later on is still seen here, and
// nothing that is mounted here is seen there: without that certainty nothing is mounted.
int mount_proc() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return ::mount("proc", "/proc", "proc", kFlags, nullptr) == 0 ? 0 : errno;
}

void close_all_but(int kept) {
  if (kept > 0) ::syscall(SYS_close_range, 0U, static_cast<unsigned>(kept) - 1, 0);
  ::syscall(SYS_close_range, static_cast<unsigned>(kept) + 1, ~0U, 0);
}

// Root and folder as they are in this mount namespace.
void tell_ready(int socket, InitReady ready) {
  int descriptors[kDescriptorsFromInit] = {::open("/", O_PATH | O_CLOEXEC),
                                           ::open(".", O_PATH | O_CLOEXEC)};
  const bool opened = descriptors[0] >= 0 && descriptors[1] >= 0;
  if (!opened && ready.error == 0) ready.error = errno;
  iovec part{&ready, sizeof(ready)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(descriptors))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (opened) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptors));
    std::memcpy(CMSG_DATA(header), descriptors, sizeof(descriptors));
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0 || ready.error != 0) ::_exit(1);
  for (const int fd : descriptors) ::close(fd);
}

void reap_all() {
  while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
  }
}

std::time_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

void name_those_left(SweepAnswer& answer) {
  ChildList children;
  children.read();
  std::size_t length = 0;
  for (const pid_t pid : children.pids()) {
    const ProcessLook look = look_at(pid);
    const int added = std::snprintf(answer.left.data() + length, answer.left.size() - length,
                                    "%s%d (%s), state %c", length == 0 ? "" : "; ", pid,
                                    look.name.data(), look.state);
    if (added < 0 || length + static_cast<std::size_t>(added) >= answer.left.size()) return;
    length += static_cast<std::size_t>(added);
  }
}

// The kernel goes through all of the namespace in one step, and a fork that is under way fails: not
// even a fork bomb gets away. No worker lives when this is asked for.
SweepAnswer sweep_all(const sigset_t& child_ended) {
  SweepAnswer answer;
  ::kill(-1, SIGKILL);
  const std::time_t give_up = now() + kSweepLimit.count();
  for (reap_all(); has_children(); reap_all()) {
    if (now() > give_up) {
      answer.all_gone = false;
      name_those_left(answer);
      return answer;
    }
    constexpr timespec kBetweenLooks{0, kBetweenLooksMs * 1'000'000};
    ::sigtimedwait(&child_ended, nullptr, &kBetweenLooks);
  }
  return answer;
}

bool receive(int socket, SweepRequest& request) {
  request.count = 0;
  return ::recv(socket, &request, sizeof(request), 0) > 0;
}

bool kill_all_but(SparedSessions& spared) {
  ChildList children;
  children.read();
  bool any = false;
  for (const pid_t pid : children.pids()) {
    if (spared.contains(pid)) {
      spared.tell_to_end(pid);
    } else {
      ::kill(pid, SIGKILL);
      any = true;
    }
  }
  return any;
}

// `ended` is a signalfd. Only the end of a child brings another one, so that is waited for.
SweepAnswer sweep(int socket, int ended, const sigset_t& child_ended, SweepRequest& request) {
  SparedSessions spared(std::span(request.sessions).first(request.count), request.signal);
  for (reap_all(); !spared.empty() && has_children(); reap_all()) {
    const int limit = kill_all_but(spared) ? kBetweenLooksMs : -1;
    std::array<pollfd, 2> ready{{{socket, POLLIN, 0}, {ended, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), limit) < 0) continue;
    signalfd_siginfo told;
    while (::read(ended, &told, sizeof(told)) > 0) {
    }
    if (ready[0].revents == 0) continue;
    if (!receive(socket, request)) ::_exit(0);
    spared = {};
  }
  return sweep_all(child_ended);
}

[[noreturn]] void serve(int socket, const sigset_t& child_ended) {
  const int ended = ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  SweepRequest request;
  for (;;) {
    std::array<pollfd, 2> ready{{{socket, POLLIN, 0}, {ended, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;
    signalfd_siginfo told;
    while (::read(ended, &told, sizeof(told)) > 0) {
    }
    reap_all();
    if (ready[0].revents == 0) continue;
    if (!receive(socket, request)) ::_exit(0);
    SweepAnswer answer = sweep(socket, ended, child_ended, request);
    answer.number = request.number;
    if (::send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) < 0) ::_exit(0);
  }
}

}  // namespace

void run_namespace_init(int socket, bool owns_users, uid_t user, gid_t group) {
  // If the agent is dead already, the socket says so.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "ddp-init");
  ::setsid();
  close_all_but(socket);
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  ::signal(SIGCHLD, SIG_DFL);
  ::sigprocmask(SIG_BLOCK, &child_ended, nullptr);

  InitReady ready;
  if (owns_users) ready.error = map_users(user, group);
  if (ready.error == 0) ready.proc_error = mount_proc();
  tell_ready(socket, ready);
  [[maybe_unused]] const int moved = ::chdir("/");  // keeps no file system busy
  serve(socket, child_ended);
}

}  // namespace ddp::launcher
