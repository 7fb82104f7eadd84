#include "tests/sim/sim_coordinator.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/sim/describe.h"

namespace ddp::sim {

using rendezvous::Hello;
using rendezvous::OrderMessage;
using rendezvous::RefuseMessage;
using rendezvous::Welcome;

SimCoordinator::SimCoordinator(World& world, Network& network, Checkers& checkers,
                               rendezvous::CoordinatorSetup setup)
    : world_(world),
      network_(network),
      checkers_(checkers),
      machine_(std::move(setup)),
      body_(world) {}

LineEnd SimCoordinator::make_end(int host, bool local, std::function<LineHandle()> line) {
  const auto session = std::make_shared<SessionId>();
  LineEnd end;
  end.opened = [this, host, local, session, line = std::move(line)] {
    body_.run([this, host, local, session, line] {
      *session = SessionId{++next_session_};
      sessions_.emplace(*session, Session{line(), host, local, std::nullopt});
      dispatch(rendezvous::SessionOpened{*session, "10.0.0." + std::to_string(host), local});
    });
  };
  end.received = [this, session](const Message& message) {
    body_.run([this, session, message] {
      const auto found = sessions_.find(*session);
      if (found == sessions_.end()) return;
      if (const auto* hello = std::get_if<Hello>(&message)) found->second.node = hello->node.id;
      dispatch(rendezvous::MessageReceived{*session, message});
    });
  };
  end.closed = [this, session](const std::string&) {
    body_.run([this, session] { session_closed(*session); });
  };
  return end;
}

void SimCoordinator::session_closed(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  network_.close_from_coordinator(found->second.line);
  if (found->second.node) checkers_.node_detached(*found->second.node);
  sessions_.erase(found);
  dispatch(rendezvous::SessionClosed{session});
  die_if_alone();
}

void SimCoordinator::dispatch(const rendezvous::CoordinatorEvent& event) {
  if (dead_) return;
  carry_out(machine_.handle(event, world_.now()));
  arm_timer();
}

void SimCoordinator::carry_out(const rendezvous::CoordinatorEffects& effects) {
  for (const auto& effect : effects) {
    std::visit([this](const auto& wanted) { carry_out(wanted); }, effect);
  }
}

void SimCoordinator::carry_out(const rendezvous::SendMessage& effect) {
  const auto found = sessions_.find(effect.session);
  if (found == sessions_.end()) throw Violation("a message is sent to a session that is closed");
  const rendezvous::NodeId& node = *found->second.node;
  world_.record(effect.session.value,
                [&] { return "C -> " + name(node) + ' ' + describe(effect.message); });
  if (const auto* order = std::get_if<OrderMessage>(&effect.message)) {
    checkers_.ordered(node, order->order);
  } else if (std::holds_alternative<Welcome>(effect.message)) {
    checkers_.node_attached(node);
  } else if (std::holds_alternative<RefuseMessage>(effect.message)) {
    checkers_.refused(node);
    found->second.node.reset();  // that it is closed next is no loss
  }
  network_.send_down(found->second.line, effect.message);
  const auto* order = std::get_if<OrderMessage>(&effect.message);
  const auto* run = order == nullptr ? nullptr : std::get_if<rendezvous::Run>(&order->order);
  if (run != nullptr && on_run_) on_run_(found->second.host, run->placement.round.number);
}

void SimCoordinator::carry_out(const rendezvous::CloseSession& effect) {
  const auto found = sessions_.find(effect.session);
  if (found == sessions_.end()) throw Violation("a session is closed twice");
  const Session session = std::move(found->second);
  sessions_.erase(found);
  network_.close_from_coordinator(session.line);
  if (!session.node) return;
  const bool superseded = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second.node == session.node;
  });
  if (!superseded) checkers_.node_dropped(*session.node);
}

void SimCoordinator::carry_out(const rendezvous::JobClosed& effect) {
  checkers_.verdict_seen(effect.verdict);
  if (on_verdict_) on_verdict_();
}

void SimCoordinator::carry_out(const rendezvous::JobStateChanged& effect) {
  world_.record(1, [&] { return "C: " + effect.line; });
}

// The checkers look at the message itself.
void SimCoordinator::carry_out(const rendezvous::NodeRefused&) {}

void SimCoordinator::arm_timer() {
  const auto deadline = machine_.next_deadline();
  if (dead_ || !deadline || (armed_ && *armed_ <= *deadline)) return;
  armed_ = deadline;
  world_.at(*deadline, [this] {
    body_.run([this] {
      armed_.reset();
      if (dead_) return;
      carry_out(machine_.on_time(world_.now()));
      arm_timer();
    });
  });
}

void SimCoordinator::die() {
  if (std::exchange(dead_, true)) return;
  world_.record(2, [] { return std::string("C dies"); });
  checkers_.coordinator_died();
  network_.coordinator_down();
  for (const auto& [id, session] : sessions_) network_.close_from_coordinator(session.line);
  sessions_.clear();
}

void SimCoordinator::finish() {
  finishing_ = true;
  die_if_alone();
  world_.after(seconds(10), [this] { die(); });
}

void SimCoordinator::die_if_alone() {
  if (!finishing_) return;
  const bool others = std::any_of(sessions_.begin(), sessions_.end(),
                                  [](const auto& entry) { return !entry.second.local; });
  if (!others) die();
}

}  // namespace ddp::sim
