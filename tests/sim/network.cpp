#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

#include "rendezvous/core/message_json.h"

namespace ddp::sim {

// The ends of a line keep those who hold the line.
Network::~Network() {
  for (const auto& weak : lines_) {
    if (const LineHandle line = weak.lock()) line->agent = line->coordinator = {};
  }
}

Duration Network::delay(bool local) {
  if (local) return Duration{};
  return world_.between(weather_.shortest_delay, weather_.longest_delay);
}

Instant Network::blocked_until(int host, bool up) const {
  const Host& at = hosts_[static_cast<std::size_t>(host)];
  return up ? at.up_blocked_until : at.down_blocked_until;
}

LineHandle Network::connect(int host, bool local, LineEnd agent, LineEnd coordinator) {
  auto line = std::make_shared<Line>();
  lines_.push_back(line);
  line->host = host;
  line->local = local;
  line->agent = std::move(agent);
  line->coordinator = std::move(coordinator);
  const Instant there = world_.now() + delay(local);
  const Instant back = there + delay(local);
  line->up.last_due = there;
  line->down.last_due = back;
  const bool reachable =
      local || (blocked_until(host, true) <= there && blocked_until(host, false) <= there);
  if (!reachable) return line;  // no answer: the agent's patience is asked for
  auto& lines = hosts_[static_cast<std::size_t>(host)].lines;
  lines.erase(std::remove_if(lines.begin(), lines.end(), [](const auto& l) { return l.expired(); }),
              lines.end());
  if (!local) lines.push_back(line);
  world_.at(there, [this, line] {
    if (line->up.dead) return;
    if (!coordinator_up_) {
      line->up.dead = line->down.dead = true;
      world_.after(delay(line->local), [line] {
        if (!line->agent_closed) line->agent.closed("connection refused");
      });
      return;
    }
    line->coordinator.opened();
  });
  world_.at(back, [line] {
    if (!line->down.dead && !line->agent_closed) line->agent.opened();
  });
  return line;
}

void Network::send_up(const LineHandle& line, const Message& message) {
  if (!line->agent_closed) push(line, true, message);
}
void Network::send_down(const LineHandle& line, const Message& message) {
  if (!line->coordinator_closed) push(line, false, message);
}
void Network::close_from_agent(const LineHandle& line) {
  if (std::exchange(line->agent_closed, true)) return;
  push(line, true, std::nullopt);
}
void Network::close_from_coordinator(const LineHandle& line) {
  if (std::exchange(line->coordinator_closed, true)) return;
  push(line, false, std::nullopt);
}
void Network::vanish(const LineHandle& line) {
  line->agent_closed = true;
  line->up.dead = line->down.dead = true;
}

void Network::push(const LineHandle& line, bool up, std::optional<Message> message) {
  Line::Direction& direction = up ? line->up : line->down;
  if (direction.dead) return;
  if (weather_.through_json && message) {
    auto read = rendezvous::read_message(rendezvous::write_message(*message));
    if (!read) throw Violation("a message cannot be read again: " + read.error().message);
    message = std::move(*read.value());
  }
  direction.last_due = std::max(direction.last_due, world_.now() + delay(line->local));
  direction.under_way.push_back({direction.last_due, std::move(message)});
  world_.at(direction.last_due, [this, line, up] { pump(line, up); });
}

void Network::pump(const LineHandle& line, bool up) {
  Line::Direction& direction = up ? line->up : line->down;
  while (!direction.dead && !direction.under_way.empty() &&
         direction.under_way.front().due <= world_.now()) {
    const Instant open_at = blocked_until(line->host, up);
    if (!line->local && open_at > world_.now()) {
      world_.at(open_at, [this, line, up] { pump(line, up); });
      return;
    }
    const Line::Parcel parcel = std::move(direction.under_way.front());
    direction.under_way.pop_front();
    const LineEnd& end = up ? line->coordinator : line->agent;
    const bool listening = up ? coordinator_up_ && !line->coordinator_closed : !line->agent_closed;
    if (!listening) continue;
    if (parcel.message) {
      end.received(*parcel.message);
    } else {
      end.closed("the other side closed the connection");
    }
  }
}

void Network::partition(int host, bool up, bool down, Duration how_long) {
  Host& at = hosts_[static_cast<std::size_t>(host)];
  if (up) at.up_blocked_until = std::max(at.up_blocked_until, world_.now() + how_long);
  if (down) at.down_blocked_until = std::max(at.down_blocked_until, world_.now() + how_long);
}

void Network::cut(int host, bool tell_agent, bool tell_coordinator) {
  for (const auto& weak : std::exchange(hosts_[static_cast<std::size_t>(host)].lines, {})) {
    const LineHandle line = weak.lock();
    if (!line || line->up.dead) continue;
    line->up.dead = line->down.dead = true;
    if (tell_agent) {
      world_.after(delay(false), [line] {
        if (!line->agent_closed) line->agent.closed("connection reset");
      });
    }
    if (tell_coordinator) {
      world_.after(delay(false), [this, line] {
        if (coordinator_up_ && !line->coordinator_closed) line->coordinator.closed("reset");
      });
    }
  }
}

void Network::heal() {
  for (Host& host : hosts_) host.up_blocked_until = host.down_blocked_until = world_.now();
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    for (const auto& weak : hosts_[i].lines) {
      if (const LineHandle line = weak.lock()) {
        world_.after(Duration{}, [this, line] {
          pump(line, true);
          pump(line, false);
        });
      }
    }
  }
}

}  // namespace ddp::sim
