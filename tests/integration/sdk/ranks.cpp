#include "tests/integration/sdk/ranks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <ddp/ddp.hpp>
#include <fstream>
#include <stdexcept>
#include <typeinfo>

namespace ddp::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

int words_fd = -1;  // in a rank: where its words go

void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

std::string run_body(const Ranks::Body& body, int rank) {
  try {
    return body(rank);
  } catch (const Timeout& error) {
    return std::string("Timeout: ") + error.what();
  } catch (const PeerLost& error) {
    return "PeerLost " + std::to_string(error.rank()) + ": " + error.what();
  } catch (const Mismatch& error) {
    return std::string("Mismatch: ") + error.what();
  } catch (const InvalidUse& error) {
    return std::string("InvalidUse: ") + error.what();
  } catch (const Unavailable& error) {
    return std::string("Unavailable: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("unexpected ") + typeid(error).name() + ": " + error.what();
  }
}

milliseconds remaining(steady_clock::time_point end) {
  const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
  return left.count() < 0 ? milliseconds(0) : left;
}

// Until a byte comes; false at the end of the stream.
bool read_some(int fd, std::string& to, steady_clock::time_point end) {
  pollfd entry{fd, POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(remaining(end).count())) <= 0) {
    throw std::runtime_error("nothing came in time");
  }
  char bytes[4096];
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  if (got > 0) to.append(bytes, static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

StoreServer::StoreServer() {
  char folder[] = "/tmp/ddp_sdk_test_XXXXXX";
  if (::mkdtemp(folder) == nullptr) throw std::runtime_error("no temporary folder");
  const std::string file = std::string(folder) + "/port";
  pid_ = ::fork();
  if (pid_ == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, 1);
    ::execl(DDP_TEST_RENDEZVOUS, DDP_TEST_RENDEZVOUS, "--plain-store", "--port", "0", "--port-file",
            file.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto end = steady_clock::now() + kDeadline;
  while (port_.empty()) {
    std::ifstream(file) >> port_;
    if (!port_.empty()) break;
    if (steady_clock::now() > end || ::waitpid(pid_, nullptr, WNOHANG) != 0) {
      throw std::runtime_error("ddprendezvous did not start");
    }
    ::usleep(2000);
  }
  ::unlink(file.c_str());
  ::rmdir(folder);
}

void StoreServer::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

StoreServer::~StoreServer() {
  kill();
}

ControlPageOwner::ControlPageOwner(int world_size, int first_rank) {
  fd_ = ::memfd_create("test-control", 0);  // inherited by exec, as the agent's is
  if (fd_ < 0 || ::ftruncate(fd_, rendezvous::kControlPageSize) != 0) {
    throw std::runtime_error("no memfd");
  }
  page_ = static_cast<rendezvous::ControlPage*>(
      ::mmap(nullptr, rendezvous::kControlPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  page_->magic = rendezvous::kControlPageMagic;
  page_->version = rendezvous::kControlPageVersion;
  page_->size = rendezvous::kControlPageSize;
  page_->round_number = 1;
  page_->round_nonce = 0xabc;
  page_->world_size = static_cast<std::uint32_t>(world_size);
  page_->local_world_size = static_cast<std::uint32_t>(world_size);
  page_->first_rank = static_cast<std::uint32_t>(first_rank);
}

ControlPageOwner::~ControlPageOwner() {
  ::munmap(page_, rendezvous::kControlPageSize);
  ::close(fd_);
}

void ControlPageOwner::poison(int rank, pid_t pid, const std::string& host,
                              const std::string& reason) {
  std::uint32_t alive = 0;
  if (!page_->poison.compare_exchange_strong(alive, 1)) return;
  page_->dead_rank = rank;
  page_->dead_pid = pid;
  std::strncpy(page_->host, host.c_str(), sizeof page_->host - 1);
  std::strncpy(page_->reason, reason.c_str(), sizeof page_->reason - 1);
  page_->poison.store(2, std::memory_order_release);
  for (std::uint32_t bell = 0; bell < page_->local_world_size; ++bell) {
    page_->doorbell[bell].fetch_add(1);
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&page_->doorbell[bell]), FUTEX_WAKE,
              INT_MAX, nullptr, nullptr, 0);
  }
}

Variables rank_environment(int rank, int count, const std::string& port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(count)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(count)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"DDP_TIMEOUT", "25"}};
}

Ranks::Ranks(int count, const StoreServer& store, const Body& body, const Variables& variables) {
  for (int rank = 0; rank < count; ++rank) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const auto& [name, value] : rank_environment(rank, count, store.port())) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      for (const auto& [name, value] : variables) {
        if (value.empty()) {
          ::unsetenv(name.c_str());
        } else {
          ::setenv(name.c_str(), value.c_str(), 1);
        }
      }
      for (const int other : pipes_) ::close(other);
      ::close(ends[0]);
      words_fd = ends[1];
      write_all(words_fd, "=" + run_body(body, rank));
      ::_exit(0);
    }
    ::close(ends[1]);
    pids_.push_back(pid);
    pipes_.push_back(ends[0]);
    received_.emplace_back();
  }
}

void say(const std::string& word) {
  write_all(words_fd, word + "\n");
}

void Ranks::await_word(int rank, const std::string& word) {
  const auto index = static_cast<std::size_t>(rank);
  const auto end = steady_clock::now() + kDeadline;
  while (received_[index].find(word + "\n") == std::string::npos) {
    if (!read_some(pipes_[index], received_[index], end)) {
      throw std::runtime_error("rank " + std::to_string(rank) + " ended with " + received_[index]);
    }
  }
}

bool Ranks::await_end(int rank) const {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid(rank), 0));
  pollfd ended{pidfd, POLLIN, 0};
  const auto limit = std::chrono::duration_cast<milliseconds>(kDeadline);
  const bool has_ended = pidfd >= 0 && ::poll(&ended, 1, static_cast<int>(limit.count())) == 1;
  ::close(pidfd);
  return has_ended;
}

std::vector<Outcome> Ranks::wait(milliseconds limit) {
  const auto end = steady_clock::now() + limit;
  std::vector<Outcome> outcomes(pids_.size());
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    try {
      while (read_some(pipes_[i], received_[i], end)) {
      }
    } catch (const std::runtime_error&) {
      outcomes[i].overdue = true;
      ::kill(pids_[i], SIGKILL);
    }
    int status = 0;
    ::waitpid(pids_[i], &status, 0);
    pids_[i] = -1;
    if (WIFEXITED(status)) outcomes[i].exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcomes[i].signal = WTERMSIG(status);
    const auto answer = received_[i].find('=');
    outcomes[i].words = received_[i].substr(0, answer);
    if (answer != std::string::npos) outcomes[i].text = received_[i].substr(answer + 1);
  }
  return outcomes;
}

Ranks::~Ranks() {
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    if (pids_[i] > 0) {
      ::kill(pids_[i], SIGKILL);
      ::waitpid(pids_[i], nullptr, 0);
    }
    ::close(pipes_[i]);
  }
}

}  // namespace ddp::testing
