#include "rendezvous/io/local_link.h"

#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "rendezvous/io/coordinator_host.h"
#include "rendezvous/io/coordinator_loop.h"
#include "rendezvous/io/member_loop.h"

namespace ddp::rendezvous {

// Each direction goes by way of the loop, so that neither machine is entered from within the other.
class LocalLink::Line final : public MemberLoop, public CoordinatorClient {
 public:
  Line(boost::asio::io_context& context, std::shared_ptr<CoordinatorLoop> coordinator,
       LinkCallbacks callbacks)
      : MemberLoop(context, "this agent", 0, std::move(callbacks)),
        coordinator_(std::move(coordinator)) {}

  void send_to_agent(const Message& message) override {
    post([message](Line& line, ConnectionId connection) {
      line.dispatch(MessageArrived{connection, message});
    });
  }
  void close_agent() override {
    post([](Line& line, ConnectionId connection) {
      line.dispatch(ConnectionFailed{connection, "closed by the coordinator"});
    });
  }

 private:
  void connect(ConnectionId connection) override {
    connection_ = connection;
    post([](Line& line, ConnectionId current) {
      line.session_ = line.coordinator_->open(line.self(), "", true);
      line.dispatch(Connected{current});
    });
  }
  void send_message(const Message& message) override {
    post([message](Line& line, ConnectionId) {
      line.coordinator_->receive(line.session_, message);
    });
  }
  void disconnect() override {
    connection_ = {};
    boost::asio::post(context(), [coordinator = coordinator_, session = session_] {
      coordinator->close(session);
    });
    session_ = {};
  }

  std::shared_ptr<Line> self() { return std::static_pointer_cast<Line>(shared_from_this()); }

  // What comes of an earlier connection is dropped.
  void post(std::function<void(Line& line, ConnectionId connection)> action) {
    boost::asio::post(
        context(), [self = self(), connection = connection_, action = std::move(action)] {
          const bool current = connection.value != 0 && self->connection_ == connection;
          if (current && !self->stopped()) action(*self, connection);
        });
  }

  std::shared_ptr<CoordinatorLoop> coordinator_;
  ConnectionId connection_;  // 0: none
  SessionId session_;        // 0: none
};

LocalLink::LocalLink(boost::asio::io_context& context, CoordinatorHost& host,
                     LinkCallbacks callbacks)
    : line_(std::make_shared<Line>(context, host.loop_, std::move(callbacks))) {}

LocalLink::~LocalLink() {
  line_->stop();
}

void LocalLink::start(const std::string& run_id, const NodeDescription& description) {
  line_->start(run_id, description);
}

void LocalLink::report(const NodeStatus& status) {
  line_->report(status);
}

}  // namespace ddp::rendezvous
