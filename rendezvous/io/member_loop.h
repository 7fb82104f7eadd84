// The member machine on the event loop: what a local and a remote link have in common.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/core/member.h"
#include "rendezvous/io/coordinator_link.h"

namespace ddp::rendezvous {

// Held by its link and by the handlers that are under way; stop() makes those do nothing.
class MemberLoop : public std::enable_shared_from_this<MemberLoop> {
 public:
  // `coordinator` names it for people.
  MemberLoop(boost::asio::io_context& context, std::string coordinator, std::uint64_t seed,
             LinkCallbacks callbacks);
  MemberLoop(const MemberLoop&) = delete;
  MemberLoop& operator=(const MemberLoop&) = delete;
  virtual ~MemberLoop() = default;

  void start(const std::string& run_id, const NodeDescription& description);
  void report(const NodeStatus& status);
  void stop();

 protected:
  // Answered by dispatch() of Connected or ConnectionFailed, later.
  virtual void connect(ConnectionId connection) = 0;
  virtual void send_message(const Message& message) = 0;
  virtual void disconnect() = 0;

  void dispatch(const MemberEvent& event);
  [[nodiscard]] boost::asio::io_context& context() { return context_; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  void carry_out(MemberEffects effects);
  void arm_timer();
  void tell_owner(MemberEffect effect);

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  std::optional<Instant> armed_;
  std::string coordinator_;
  std::uint64_t seed_;
  LinkCallbacks callbacks_;
  std::optional<Member> machine_;
  NodeStatus status_;  // reported before start()
  bool stopped_ = false;
};

}  // namespace ddp::rendezvous
