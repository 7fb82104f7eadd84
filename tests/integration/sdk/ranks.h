// Ranks for tests: forked processes with the environment that a launcher gives, a store for them to
// meet at, and what became of each.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/core/control_page.h"

namespace ddp::testing {

// Every wait of these tests ends by then, also on a machine that is busy with other things.
inline constexpr std::chrono::seconds kDeadline{30};

// A ddprendezvous with a plain store on a free port of the loopback interface.
class StoreServer {
 public:
  StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  [[nodiscard]] std::string port() const { return port_; }
  void kill();

 private:
  pid_t pid_ = -1;
  std::string port_;
};

// What an agent hands down, and writes when a worker dies.
class ControlPageOwner {
 public:
  ControlPageOwner(int world_size, int first_rank = 0);
  ControlPageOwner(const ControlPageOwner&) = delete;
  ControlPageOwner& operator=(const ControlPageOwner&) = delete;
  ~ControlPageOwner();

  [[nodiscard]] int fd() const { return fd_; }
  void poison(int rank, pid_t pid, const std::string& host, const std::string& reason);

 private:
  int fd_ = -1;
  rendezvous::ControlPage* page_ = nullptr;
};

using Variables = std::map<std::string, std::string>;

struct Outcome {
  std::string text;    // what the body returned, or "<class> <rank>: <message>" of what it threw
  std::string words;   // what it said, a line each
  int exit_code = -1;  // -1: killed by a signal
  int signal = 0;
  bool overdue = false;  // had to be killed by the test
};

// Runs `body(rank)` in one process per rank.
class Ranks {
 public:
  using Body = std::function<std::string(int rank)>;

  // `variables` come on top of RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and the store's
  // address; an empty value removes one.
  Ranks(int count, const StoreServer& store, const Body& body, const Variables& variables = {});
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  [[nodiscard]] pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  // Blocks until the rank has said `word` with say(), and no other before it.
  void await_word(int rank, const std::string& word);
  // Until it has ended, while others may live on; false if it does not within kDeadline.
  [[nodiscard]] bool await_end(int rank) const;
  [[nodiscard]] std::vector<Outcome> wait(std::chrono::milliseconds limit = kDeadline);

 private:
  std::vector<pid_t> pids_;
  std::vector<int> pipes_;
  std::vector<std::string> received_;
};

// In a rank: tells the test how far it is.
void say(const std::string& word);

// The environment of one rank, for programs that are started otherwise.
[[nodiscard]] Variables rank_environment(int rank, int count, const std::string& port);

}  // namespace ddp::testing
