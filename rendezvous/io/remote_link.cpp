#include "rendezvous/io/remote_link.h"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "rendezvous/io/member_loop.h"
#include "rendezvous/io/message_channel.h"

namespace ddp::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

}  // namespace

class RemoteLink::Line final : public MemberLoop {
 public:
  Line(boost::asio::io_context& context, Endpoint coordinator, std::uint64_t seed,
       LinkCallbacks callbacks)
      : MemberLoop(context, text_of(coordinator), seed, std::move(callbacks)),
        coordinator_(std::move(coordinator)),
        resolver_(context),
        socket_(context) {}

  [[nodiscard]] bool is_looking_up() const { return lookups_ > 0; }

 private:
  void connect(ConnectionId connection) override {
    connection_ = connection;
    error_code not_literal;
    const auto address = boost::asio::ip::make_address(coordinator_.host, not_literal);
    if (!not_literal) {
      endpoints_ = {tcp::endpoint(address, coordinator_.port.value)};
      return try_next(connection, boost::asio::error::host_not_found);
    }
    ++lookups_;
    resolver_.async_resolve(
        coordinator_.host, std::to_string(coordinator_.port.value),
        [self = self(), connection](const error_code& error, const tcp::resolver::results_type& r) {
          --self->lookups_;
          if (!self->is_current(connection)) return;
          if (error) return self->dispatch(ConnectionFailed{connection, error.message()});
          self->endpoints_.assign(r.begin(), r.end());
          self->try_next(connection, boost::asio::error::host_not_found);
        });
  }

  // Each of the name's addresses in turn; `last` is why the one before failed.
  void try_next(ConnectionId connection, error_code last) {
    if (endpoints_.empty()) return fail_later(connection, last);
    const tcp::endpoint endpoint = endpoints_.front();
    endpoints_.erase(endpoints_.begin());
    error_code error;
    socket_.close(error);
    socket_.open(endpoint.protocol(), error);
    if (error) return try_next(connection, error);
    prepare_agent_socket(socket_);
    socket_.async_connect(endpoint, [self = self(), connection](const error_code& refused) {
      if (!self->is_current(connection)) return;
      if (refused) return self->try_next(connection, refused);
      self->start_channel(connection);
    });
  }

  void fail_later(ConnectionId connection, error_code error) {
    boost::asio::post(context(), [self = self(), connection, error] {
      if (self->is_current(connection)) {
        self->dispatch(ConnectionFailed{connection, error.message()});
      }
    });
  }

  void start_channel(ConnectionId connection) {
    ChannelHandlers handlers;
    handlers.on_message = [self = self(), connection](Message message) {
      if (self->is_current(connection)) {
        self->dispatch(MessageArrived{connection, std::move(message)});
      }
    };
    handlers.on_closed = [self = self(), connection](const std::string& why) {
      if (self->is_current(connection)) self->dispatch(ConnectionFailed{connection, why});
    };
    channel_ = std::make_shared<MessageChannel>(std::move(socket_), FrameReader(kMaxFrame),
                                                std::move(handlers));
    socket_ = tcp::socket(context());
    channel_->send_magic();
    channel_->start({});
    dispatch(Connected{connection});
  }

  void send_message(const Message& message) override {
    if (channel_) channel_->send(message);
  }

  void disconnect() override {
    connection_.reset();
    resolver_.cancel();
    endpoints_.clear();
    error_code ignored;
    socket_.close(ignored);
    if (!channel_) return;
    if (stopped()) {
      channel_->abandon();
    } else {
      channel_->close_after_sending();
    }
    channel_.reset();
  }

  [[nodiscard]] bool is_current(ConnectionId connection) const {
    return !stopped() && connection_ == connection;
  }
  std::shared_ptr<Line> self() { return std::static_pointer_cast<Line>(shared_from_this()); }

  Endpoint coordinator_;
  tcp::resolver resolver_;
  tcp::socket socket_;  // of the attempt under way
  std::vector<tcp::endpoint> endpoints_;
  std::optional<ConnectionId> connection_;
  std::shared_ptr<MessageChannel> channel_;
  int lookups_ = 0;  // under way; one that was cancelled still is
};

RemoteLink::RemoteLink(boost::asio::io_context& context, Endpoint coordinator, std::uint64_t seed,
                       LinkCallbacks callbacks)
    : line_(std::make_shared<Line>(context, std::move(coordinator), seed, std::move(callbacks))) {}

RemoteLink::~RemoteLink() {
  line_->stop();
}

void RemoteLink::start(const std::string& run_id, const NodeDescription& description) {
  line_->start(run_id, description);
}

void RemoteLink::report(const NodeStatus& status) {
  line_->report(status);
}

bool RemoteLink::is_looking_up() const {
  return line_->is_looking_up();
}

}  // namespace ddp::rendezvous
