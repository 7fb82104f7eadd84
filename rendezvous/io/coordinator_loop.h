// The coordinator machine on the event loop: what CoordinatorHost and LocalLink share.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/core/coordinator.h"

namespace ddp::rendezvous {

// The way to one agent. Neither call may call back.
class CoordinatorClient {
 public:
  CoordinatorClient() = default;
  CoordinatorClient(const CoordinatorClient&) = delete;
  CoordinatorClient& operator=(const CoordinatorClient&) = delete;
  virtual ~CoordinatorClient() = default;

  virtual void send_to_agent(const Message& message) = 0;
  virtual void close_agent() = 0;  // when all that was sent is out
};

class CoordinatorLoop : public std::enable_shared_from_this<CoordinatorLoop> {
 public:
  using Note = std::function<void(const std::string& text)>;

  // `on_note`: for -v. `on_refused`: why a node was turned away. Either may be empty.
  CoordinatorLoop(boost::asio::io_context& context, CoordinatorSetup setup, Note on_note,
                  Note on_refused);

  SessionId open(std::shared_ptr<CoordinatorClient> client, const std::string& address, bool local);
  void receive(SessionId session, Message message);
  void close(SessionId session);

  [[nodiscard]] bool others_connected() const;
  void finish(std::function<void()> on_all_gone);
  // Nothing is called any more; the clients are let go.
  void stop();

 private:
  struct Client {
    std::shared_ptr<CoordinatorClient> way;
    bool local;
  };

  void dispatch(const CoordinatorEvent& event);
  void carry_out(const CoordinatorEffects& effects);
  void arm_timer();
  void finish_if_alone();

  boost::asio::io_context& context_;
  Coordinator machine_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer finish_timer_;
  std::optional<Instant> armed_;
  Note on_note_;
  Note on_refused_;
  std::map<SessionId, Client> clients_;
  std::function<void()> on_all_gone_;
  std::uint64_t sessions_ = 0;
  bool stopped_ = false;
};

}  // namespace ddp::rendezvous
