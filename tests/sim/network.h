// The connections between agents and the coordinator: each direction keeps its order, nothing else
// is sure.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/message.h"
#include "tests/sim/world.h"

namespace ddp::sim {

using rendezvous::Message;

// What one end of a connection is told.
struct LineEnd {
  std::function<void()> opened;
  std::function<void(const Message& message)> received;
  std::function<void(const std::string& why)> closed;
};

class Line;
using LineHandle = std::shared_ptr<Line>;

class Network {
 public:
  struct Weather {
    Duration shortest_delay = milliseconds(0);
    Duration longest_delay = milliseconds(5);
    bool through_json = false;  // messages travel as text
  };

  Network(World& world, int hosts, Weather weather)
      : world_(world), weather_(weather), hosts_(static_cast<std::size_t>(hosts)) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  // From a host to the coordinator. `local`: no network in between. Both ends are told when (and
  // if) it is there; a coordinator that is down refuses.
  LineHandle connect(int host, bool local, LineEnd agent, LineEnd coordinator);
  void send_up(const LineHandle& line, const Message& message);
  void send_down(const LineHandle& line, const Message& message);
  // What was sent still arrives, then the other end hears of it.
  void close_from_agent(const LineHandle& line);
  void close_from_coordinator(const LineHandle& line);
  // The host is gone without a word: nothing arrives any more, the coordinator hears nothing.
  void vanish(const LineHandle& line);

  void coordinator_down() { coordinator_up_ = false; }
  // Messages wait until it is over, as TCP repeats them.
  void partition(int host, bool up, bool down, Duration how_long);
  // Cuts every connection of that host. An end that isn't told has to find out.
  void cut(int host, bool tell_agent, bool tell_coordinator);
  void heal();

 private:
  friend class Line;
  struct Host {
    Instant up_blocked_until{};
    Instant down_blocked_until{};
    std::vector<std::weak_ptr<Line>> lines;
  };

  Duration delay(bool local);
  void push(const LineHandle& line, bool up, std::optional<Message> message);
  void pump(const LineHandle& line, bool up);
  [[nodiscard]] Instant blocked_until(int host, bool up) const;

  World& world_;
  Weather weather_;
  std::vector<Host> hosts_;
  std::vector<std::weak_ptr<Line>> lines_;  // all that ever were
  bool coordinator_up_ = true;
};

// One connection. Only the network looks inside.
class Line {
 private:
  friend class Network;
  struct Parcel {
    Instant due;
    std::optional<Message> message;  // none: closed here
  };
  struct Direction {
    std::deque<Parcel> under_way;
    Instant last_due{};
    bool dead = false;  // nothing more arrives
  };
  int host = 0;
  bool local = false;
  LineEnd agent;
  LineEnd coordinator;
  Direction up;
  Direction down;
  bool agent_closed = false;
  bool coordinator_closed = false;
};

}  // namespace ddp::sim
