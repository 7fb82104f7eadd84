// Runs the coordinator on the event loop: agents' connections and agents of this process on one
// side, the pure machine on the other.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

class CoordinatorLoop;

class CoordinatorHost {
 public:
  struct Options {
    // Told to every agent: this coordinator dies with the agent beside it. Serves that agent's job
    // only.
    bool embedded = true;
    // Nodes are awaited this long, at the start and after a loss.
    Duration join_timeout = std::chrono::seconds(600);
    // Draws the nonces of rounds: from std::random_device or better.
    std::uint64_t seed = 0;
    // One line when a job's state changes, for -v and logs. May be empty.
    std::function<void(const std::string& text)> on_note;
    // One line when a node is turned away. May be empty.
    std::function<void(const std::string& text)> on_refused;
  };

  CoordinatorHost(boost::asio::io_context& context, Options options);
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;
  ~CoordinatorHost();

  // Takes over a connection whose first bytes said agent protocol. `already_read` is all that was
  // read from it, the magic `ddpagent` included.
  void accept(boost::asio::ip::tcp::socket socket, std::string already_read);

  // No agent of another process is connected.
  [[nodiscard]] bool idle() const;
  // For the embedding agent when its own part is done: calls `on_all_gone` from the loop, once,
  // when every other agent has been told to leave and has closed, or after 10 s at the latest.
  void finish(std::function<void()> on_all_gone);

 private:
  friend class LocalLink;
  std::shared_ptr<CoordinatorLoop> loop_;
};

}  // namespace ddp::rendezvous
