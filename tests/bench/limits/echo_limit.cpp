// A bare Asio server for messages of fixed sizes: the least that a store server on Asio can cost.
// echo_limit: prints its port, serves until it is killed.
//
// A connection begins with three 32-bit numbers: the size of its requests, the size of the answers,
// and its role: 0 answers each request, 1 parks it, 2 answers all that are parked.
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kBacklog = 65535;

class Session;
using Parked = std::vector<std::shared_ptr<Session>>;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Parked& parked) : socket_(std::move(socket)), parked_(parked) {
    socket_.set_option(tcp::no_delay(true));
  }

  void start() {
    asio::async_read(
        socket_, asio::buffer(header_),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          if (error) return;
          self->request_.resize(self->header_[0]);
          self->answer_.resize(self->header_[1], 'x');
          self->read();
        });
  }

 private:
  void read() {
    asio::async_read(
        socket_, asio::buffer(request_),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          if (!error) self->act();
        });
  }

  void act() {
    switch (header_[2]) {
      case 0:
        return write();
      case 1:
        parked_.push_back(shared_from_this());
        return;
      default:
        for (const auto& session : std::exchange(parked_, {})) session->write();
        read();
    }
  }

  void write() {
    asio::async_write(
        socket_, asio::buffer(answer_),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          if (!error) self->read();
        });
  }

  tcp::socket socket_;
  Parked& parked_;
  std::array<std::uint32_t, 3> header_{};
  std::vector<char> request_;
  std::vector<char> answer_;
};

void accept(tcp::acceptor& acceptor, Parked& parked) {
  acceptor.async_accept([&](const boost::system::error_code& error, tcp::socket socket) {
    if (!error) std::make_shared<Session>(std::move(socket), parked)->start();
    accept(acceptor, parked);
  });
}

}  // namespace

int main() {
  asio::io_context context(1);
  tcp::acceptor acceptor(context);
  acceptor.open(tcp::v4());
  acceptor.bind({asio::ip::address_v4::loopback(), 0});
  acceptor.listen(kBacklog);
  std::cout << acceptor.local_endpoint().port() << std::endl;
  Parked parked;
  accept(acceptor, parked);
  context.run();
}
