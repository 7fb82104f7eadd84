// One TCP connection that carries messages of the agent protocol, both ways; either side uses it.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/core/frame_reader.h"
#include "rendezvous/core/message.h"

namespace ddp::rendezvous {

struct ChannelHandlers {
  std::function<void(Message message)> on_message;
  // Once, when the connection is over, whoever ended it. Not after abandon().
  std::function<void(const std::string& why)> on_closed;
};

// Handlers are called from the loop only. A peer that doesn't read, or sends what is no message,
// is cut off.
class MessageChannel : public std::enable_shared_from_this<MessageChannel> {
 public:
  MessageChannel(boost::asio::ip::tcp::socket socket, FrameReader reader, ChannelHandlers handlers);

  // `already_read`: what was read from the socket before.
  void start(std::string already_read);
  void send(const Message& message);
  void send_magic();
  void set_frame_limit(std::size_t limit) { reader_.set_limit(limit); }
  // Nothing is received any more; what was sent still goes out, within a bound.
  void close_after_sending();
  // At once, and no handler is called any more.
  void abandon();

 private:
  void wait_readable();
  void on_readable();
  void receive(std::string_view bytes);
  void write_more();
  void end_sending();
  void fail(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer linger_;
  FrameReader reader_;
  ChannelHandlers handlers_;
  std::string unsent_;
  std::string in_flight_;
  bool closing_ = false;  // close_after_sending() was called
  bool open_ = true;
};

// Makes a connected or accepted socket fit for the protocol: no delay, keepalive, not inherited.
void prepare_agent_socket(boost::asio::ip::tcp::socket& socket);

}  // namespace ddp::rendezvous
