// The end of the agent: what it has said and noted is written, while signals and the guardian go on
// being watched.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>

#include "launcher/io/console.h"
#include "launcher/io/event_file.h"

namespace ddp::launcher {

// A reader who goes on taking bytes is waited for as long as he likes, until hurry(): then less
// than a second. What is dropped is said, if somebody takes that.
class Farewell {
 public:
  // `events` may be null. It runs `context`, which has stopped.
  Farewell(boost::asio::io_context& context, Console& console, EventFile* events);
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;

  // Until all is written or given up. False: only ending the process gets past a thread that is
  // stuck in a write.
  [[nodiscard]] bool run();
  void hurry();

 private:
  enum class Step : std::uint8_t { events, output, losses, over };

  void after(Step step);
  void enter(Step step);
  void give_up();

  boost::asio::io_context& context_;
  Console& console_;
  EventFile* events_;
  boost::asio::steady_timer events_timer_;
  boost::asio::steady_timer hurry_timer_;
  Step step_ = Step::events;
  bool hurried_ = false;
};

}  // namespace ddp::launcher
