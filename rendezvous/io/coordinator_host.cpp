#include "rendezvous/io/coordinator_host.h"

#include <boost/system/error_code.hpp>
#include <utility>

#include "rendezvous/io/coordinator_loop.h"
#include "rendezvous/io/message_channel.h"

namespace ddp::rendezvous {
namespace {

CoordinatorSetup setup_of(const CoordinatorHost::Options& options) {
  CoordinatorSetup setup;
  setup.embedded = options.embedded;
  setup.times.join = options.join_timeout;
  setup.seed = options.seed;
  return setup;
}

// An agent of another process.
class RemoteClient final : public CoordinatorClient,
                           public std::enable_shared_from_this<RemoteClient> {
 public:
  explicit RemoteClient(std::shared_ptr<CoordinatorLoop> loop) : loop_(std::move(loop)) {}

  void start(boost::asio::ip::tcp::socket socket, std::string already_read) {
    boost::system::error_code error;
    const auto peer = socket.remote_endpoint(error);
    prepare_agent_socket(socket);
    ChannelHandlers handlers;
    // The loop keeps us, we keep the channel, and it must not keep us.
    handlers.on_message = [weak = weak_from_this()](Message message) {
      if (const auto self = weak.lock()) self->loop_->receive(self->session_, std::move(message));
    };
    handlers.on_closed = [weak = weak_from_this()](const std::string&) {
      if (const auto self = weak.lock()) self->loop_->close(self->session_);
    };
    channel_ = std::make_shared<MessageChannel>(
        std::move(socket), FrameReader(kMaxFrameBeforeHello, kAgentMagic), std::move(handlers));
    session_ =
        loop_->open(shared_from_this(), error ? std::string() : peer.address().to_string(), false);
    channel_->start(std::move(already_read));
  }

  void send_to_agent(const Message& message) override {
    if (std::holds_alternative<Welcome>(message)) channel_->set_frame_limit(kMaxFrame);
    channel_->send(message);
  }
  void close_agent() override { channel_->close_after_sending(); }

 private:
  std::shared_ptr<CoordinatorLoop> loop_;
  std::shared_ptr<MessageChannel> channel_;
  SessionId session_;
};

}  // namespace

CoordinatorHost::CoordinatorHost(boost::asio::io_context& context, Options options)
    : loop_(std::make_shared<CoordinatorLoop>(
          context, setup_of(options), std::move(options.on_note), std::move(options.on_refused))) {}

CoordinatorHost::~CoordinatorHost() {
  loop_->stop();
}

void CoordinatorHost::accept(boost::asio::ip::tcp::socket socket, std::string already_read) {
  std::make_shared<RemoteClient>(loop_)->start(std::move(socket), std::move(already_read));
}

bool CoordinatorHost::idle() const {
  return !loop_->others_connected();
}

void CoordinatorHost::finish(std::function<void()> on_all_gone) {
  loop_->finish(std::move(on_all_gone));
}

}  // namespace ddp::rendezvous
