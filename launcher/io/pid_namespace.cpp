#include "launcher/io/pid_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "launcher/io/namespace_init.h"

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::Result;

// Longer than it tries by itself: then somebody has stopped it.
constexpr std::chrono::seconds kAnswerLimit{15};

constexpr int kWithoutUsers = CLONE_NEWPID | CLONE_NEWNS;
constexpr int kWithUsers = kWithoutUsers | CLONE_NEWUSER;

Error not_permitted(int error) {
  std::string text =
      "--isolate=pid: no PID namespace can be made here: " + std::generic_category().message(error);
  if (error == EPERM || error == ENOSPC || error == EACCES) {
    text +=
        " (root may make one; others need user namespaces, which this system or its container "
        "forbids)";
  }
  return {text};
}

struct Born {
  pid_t pid;
  UniqueFd pidfd;
};

// Forks the namespace's first process. errno says why there is none.
Born fork_init(int namespaces, int its_end, uid_t user, gid_t group) {
  int pidfd = -1;
  // Not the C library's fork: that one takes no flags.
  const long pid =
      ::syscall(SYS_clone, namespaces | CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
  if (pid == 0) run_namespace_init(its_end, (namespaces & CLONE_NEWUSER) != 0, user, group);
  return {static_cast<pid_t>(pid), UniqueFd(pid > 0 ? pidfd : -1)};
}

struct Received {
  InitReady ready;
  UniqueFd root;
  UniqueFd folder;
};

// An error of ECHILD: it died without a word.
Received receive_ready(int socket) {
  Received received;
  received.ready.error = ECHILD;
  iovec part{&received.ready, sizeof(received.ready)};
  int descriptors[kDescriptorsFromInit];
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(descriptors))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(received.ready)) {
    received.ready.error = ECHILD;
    return received;
  }
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(descriptors))) {
    if (received.ready.error == 0) received.ready.error = EMFILE;
    return received;
  }
  std::memcpy(descriptors, CMSG_DATA(header), sizeof(descriptors));
  received.root.reset(descriptors[0]);
  received.folder.reset(descriptors[1]);
  return received;
}

}  // namespace

struct PidNamespace::Sweep {
  Sweep(boost::asio::io_context& context, int socket, OnSwept done)
      : answer(context, socket), limit(context), on_done(std::move(done)) {}
  // Only lent to Asio.
  ~Sweep() { answer.release(); }

  boost::asio::posix::stream_descriptor answer;
  boost::asio::steady_timer limit;
  OnSwept on_done;
};

PidNamespace::PidNamespace(Key) {}

Result<std::unique_ptr<PidNamespace>> PidNamespace::make() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return not_permitted(errno);
  }
  auto made = std::make_unique<PidNamespace>(Key{});
  made->socket_.reset(ends[0]);
  UniqueFd its_end(ends[1]);
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  made->namespaces_ = kWithoutUsers;
  Born init = fork_init(kWithoutUsers, its_end.get(), user, group);
  if (init.pid < 0 && errno == EPERM) {
    made->namespaces_ = kWithUsers;
    init = fork_init(kWithUsers, its_end.get(), user, group);
  }
  if (init.pid < 0) return not_permitted(errno);
  made->init_ = init.pid;
  made->pidfd_ = std::move(init.pidfd);
  its_end.reset();
  Received received = receive_ready(made->socket_.get());
  if (received.ready.error != 0) return not_permitted(received.ready.error);
  made->root_ = std::move(received.root);
  made->folder_ = std::move(received.folder);
  if (received.ready.proc_error != 0) {
    made->namespaces_ &= ~CLONE_NEWNS;  // nothing in it differs
    made->proc_trouble_ = std::generic_category().message(received.ready.proc_error);
  }
  return made;
}

PidNamespace::~PidNamespace() {
  if (init_ <= 0) return;
  ::kill(init_, SIGKILL);
  // One that can't be killed keeps it from ending.
  ::waitpid(init_, nullptr, WNOHANG);
}

Birthplace PidNamespace::birthplace() const {
  return {pidfd_.get(), namespaces_, root_.get(), folder_.get()};
}

void PidNamespace::sweep(boost::asio::io_context& context, std::vector<pid_t> spared, int signal,
                         OnSwept on_done) {
  sweep_ = std::make_unique<Sweep>(context, socket_.get(), std::move(on_done));
  if (!proc_trouble_.empty()) spared.clear();
  spared.resize(std::min(spared.size(), SweepRequest::kMostSpared));
  std::sort(spared.begin(), spared.end());
  ask_to_sweep(spared, signal);
  wait_for_answer();
}

void PidNamespace::wait_for_answer() {
  sweep_->answer.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this](const boost::system::error_code& error) {
                              if (!error) read_answer();
                            });
}

void PidNamespace::spare_nobody() {
  if (sweep_) ask_to_sweep({}, 0);
}

void PidNamespace::ask_to_sweep(const std::vector<pid_t>& spared, int signal) {
  SweepRequest request;
  request.number = ++requests_;
  request.signal = signal;
  request.count = static_cast<unsigned>(spared.size());
  std::copy(spared.begin(), spared.end(), request.sessions.begin());
  // If it can't be asked it is dead, and the socket is at its end.
  ::send(socket_.get(), &request, offsetof(SweepRequest, sessions) + spared.size() * sizeof(pid_t),
         MSG_NOSIGNAL);
  if (!spared.empty()) return;
  sweep_->limit.expires_after(kAnswerLimit);
  sweep_->limit.async_wait([this](const boost::system::error_code& error) {
    if (!error && init_ > 0) ::kill(init_, SIGKILL);
  });
}

void PidNamespace::read_answer() {
  SweepAnswer answer;
  if (::recv(socket_.get(), &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer)) {
    init_ = -1;  // killed by somebody, and so the kernel has killed all the others
    answer = {};
  } else if (answer.number != requests_) {
    return wait_for_answer();  // it had answered before it was asked to hurry
  }
  const std::unique_ptr<Sweep> done = std::move(sweep_);
  done->on_done(answer.all_gone ? std::string() : answer.left.data());
}

}  // namespace ddp::launcher
