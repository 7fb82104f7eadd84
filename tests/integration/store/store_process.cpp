#include "tests/integration/store/store_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace ddp::store_test {
namespace {

// The last word of the line that says where it serves.
std::uint16_t read_port(int descriptor) {
  std::string line;
  char byte = 0;
  while (::read(descriptor, &byte, 1) == 1 && byte != '\n') line.push_back(byte);
  const std::size_t space = line.rfind(' ');
  if (space == std::string::npos) throw std::runtime_error("the store did not start: " + line);
  return static_cast<std::uint16_t>(std::stoi(line.substr(space)));
}

}  // namespace

StoreProcess::StoreProcess(const std::string& program) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::execl(program.c_str(), program.c_str(), "--port", "0", nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  try {
    port_ = read_port(out[0]);
  } catch (...) {
    ::close(out[0]);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    throw;
  }
  ::close(out[0]);
}

StoreProcess::~StoreProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void StoreProcess::pause() const {
  ::kill(pid_, SIGSTOP);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (state() != 'T') {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it does not stop");
    std::this_thread::yield();
  }
}

void StoreProcess::resume() const {
  ::kill(pid_, SIGCONT);
}

int StoreProcess::end() {
  const pid_t pid = std::exchange(pid_, -1);
  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

char StoreProcess::state() const {
  std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');
  return name_end + 2 < text.size() ? text[name_end + 2] : '?';
}

}  // namespace ddp::store_test
