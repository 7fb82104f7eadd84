// Real sockets on loopback: coordinator host, local and remote links, each test ends by events.
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/io/coordinator_host.h"
#include "rendezvous/io/local_link.h"
#include "rendezvous/io/remote_link.h"
#include "tests/unit/rendezvous/job_scene.h"

namespace ddp::rendezvous::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// An agent without workers: obeys at once.
class PuppetAgent {
 public:
  LinkCallbacks callbacks() {
    LinkCallbacks callbacks;
    callbacks.on_order = [this](const Order& order) { obey(order); };
    callbacks.on_lost = [this](std::int32_t code, const std::string& why) {
      exit_code = code;
      reason = why;
    };
    return callbacks;
  }
  void start(std::unique_ptr<CoordinatorLink> with, const NodeDescription& node) {
    link = std::move(with);
    link->start("job", node);
  }

  std::unique_ptr<CoordinatorLink> link;
  std::optional<Placement> placement;
  std::optional<std::int32_t> exit_code;
  std::string reason;
  int orders = 0;

 private:
  void obey(const Order& order) {
    ++orders;
    if (const auto* run = std::get_if<Run>(&order)) {
      placement = run->placement;
      NodeStatus status = status_of(NodePhase::placed, placement->round);
      if (placement->group_rank.value == 0) status.store = Endpoint{"store", Port{4000}};
      if (placement->master) status.phase = NodePhase::succeeded;
      report(status);
    } else if (const auto* close = std::get_if<Close>(&order)) {
      NodeStatus status = status_of(NodePhase::stopped, placement->round);
      status.verdict_acknowledged = true;
      reason = close->verdict.reason;
      report(status);
    } else if (const auto* leave = std::get_if<Leave>(&order)) {
      exit_code = leave->verdict.exit_code;
      link.reset();
    } else if (const auto* refuse = std::get_if<Refuse>(&order)) {
      exit_code = refuse->exit_code;
      reason = refuse->reason;
      link.reset();
    }
  }
  void report(const NodeStatus& status) {
    if (status == last_) return;
    last_ = status;
    link->report(status);
  }

  NodeStatus last_;
};

class Scene {
 public:
  Scene() { accept_next(); }

  Endpoint endpoint() const { return {"127.0.0.1", Port{acceptor_.local_endpoint().port()}}; }
  void stop_accepting() { acceptor_.close(); }
  void end_host() { host.reset(); }
  template <typename Condition>
  void run_until(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      context.run_one_for(milliseconds(100));
    }
    REQUIRE(condition());
  }

  asio::io_context context{1};
  std::unique_ptr<CoordinatorHost> host =
      std::make_unique<CoordinatorHost>(context, CoordinatorHost::Options{});

 private:
  void accept_next() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      if (host) host->accept(std::move(socket), {});
      accept_next();
    });
  }

  tcp::acceptor acceptor_{context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
};

std::unique_ptr<CoordinatorLink> remote(Scene& scene, PuppetAgent& agent) {
  return std::make_unique<RemoteLink>(scene.context, scene.endpoint(), 1, agent.callbacks());
}
std::unique_ptr<CoordinatorLink> local(Scene& scene, PuppetAgent& agent) {
  return std::make_unique<LocalLink>(scene.context, *scene.host, agent.callbacks());
}

}  // namespace

TEST_CASE("agent links: a job of one node needs no socket") {
  Scene scene;
  scene.stop_accepting();
  PuppetAgent agent;
  agent.start(local(scene, agent), description("a", {1, 1}));
  CHECK(agent.orders == 0);  // never from within a call
  scene.run_until([&] { return agent.exit_code.has_value(); });
  CHECK(*agent.exit_code == 0);
  CHECK(agent.placement->world_size == 1);
}

TEST_CASE("agent links: a local and a remote node run a job and leave together") {
  Scene scene;
  PuppetAgent first;
  PuppetAgent second;
  NodeDescription a = description("a");
  a.node_rank = 0;
  NodeDescription b = description("b");
  b.node_rank = 1;
  second.start(remote(scene, second), b);
  first.start(local(scene, first), a);
  scene.run_until([&] { return first.exit_code && second.exit_code; });
  CHECK(*first.exit_code == 0);
  CHECK(*second.exit_code == 0);
  CHECK(second.placement->group_rank == GroupRank{1});
  CHECK(second.placement->master == Endpoint{"store", Port{4000}});

  bool all_gone = false;
  scene.host->finish([&] { all_gone = true; });
  CHECK_FALSE(all_gone);
  scene.run_until([&] { return all_gone; });
  CHECK(scene.host->idle());
}

TEST_CASE("agent links: heartbeats are answered") {
  Scene scene;
  PuppetAgent agent;
  agent.start(remote(scene, agent), description("a"));
  scene.run_until([&] { return agent.orders >= 4; });
  CHECK_FALSE(agent.exit_code);
}

TEST_CASE("agent links: a refusal arrives, though the connection is closed after it") {
  Scene scene;
  PuppetAgent first;
  PuppetAgent second;
  first.start(remote(scene, first), description("a"));
  scene.run_until([&] { return first.orders > 0; });
  second.start(remote(scene, second), description("b", {3, 3}));
  scene.run_until([&] { return second.exit_code.has_value(); });
  CHECK(*second.exit_code == exit_code::kRefused);
  CHECK(second.reason ==
        "job 'job': it was started with --nnodes 2:2, host b says --nnodes 3:3; use the same on "
        "every node");
}

TEST_CASE("agent links: an embedded coordinator that ends is given up after a few seconds") {
  Scene scene;
  PuppetAgent agent;
  agent.start(remote(scene, agent), description("a"));
  scene.run_until([&] { return agent.orders > 0; });
  scene.stop_accepting();
  scene.end_host();
  scene.run_until([&] { return agent.exit_code.has_value(); });
  CHECK(*agent.exit_code == exit_code::kCoordinatorLost);
  CHECK(agent.reason.find("lost the coordinator at 127.0.0.1:") == 0);
}

TEST_CASE("agent links: bytes that are no message close their connection, others go on") {
  Scene scene;
  PuppetAgent agent;
  agent.start(remote(scene, agent), description("a"));
  scene.run_until([&] { return agent.orders > 0; });

  const std::string stream =
      GENERATE(std::string("GET / HTTP/1.1\r\n"), std::string("ddpagent\xFF\xFF\xFF\x7F"),
               std::string("ddpagent\x01\x40\0\0", 12),  // 16 KiB and a byte, before the hello
               std::string("ddpagent\x02\0\0\0{]", 14));
  tcp::socket stranger(scene.context);
  stranger.connect({asio::ip::address_v4::loopback(), scene.endpoint().port.value});
  asio::write(stranger, asio::buffer(stream));
  bool closed = false;
  char byte = 0;
  stranger.async_read_some(asio::buffer(&byte, 1),
                           [&](const boost::system::error_code& error, std::size_t) {
                             closed = static_cast<bool>(error);
                           });
  scene.run_until([&] { return closed; });
  const int before = agent.orders;
  scene.run_until([&] { return agent.orders > before; });
}

}  // namespace ddp::rendezvous::test
