// Writes to one of our own descriptors from a thread of its own: whoever is stuck on the other side
// holds up neither heartbeats nor signals.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

namespace ddp::launcher {

// The descriptor is inherited and shared with the user's shell, so it stays blocking; a thread for
// each is what keeps one that is stuck from holding up another. The thread starts with the first
// byte. All calls come from the loop's thread.
class OutputWriter {
 public:
  // Beyond this much the readers of workers are to wait: workers are held back, as by a pipe.
  static constexpr std::size_t kCapacity = 1 << 20;

  // One that takes no byte for so long is stuck: what is held for it and what comes is dropped
  // until it moves again.
  static constexpr std::chrono::seconds kStuckAfter{10};

  struct Losses {
    std::uint64_t bytes = 0;
    int error = 0;      // errno of the first write that failed; 0: it was stuck
    bool late = false;  // or too slow for drop()
  };

  OutputWriter(boost::asio::io_context& context, int descriptor);
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;
  // Leaves a thread behind that isn't done soon, with what it still had to write.
  ~OutputWriter();

  void write(std::string_view bytes);
  [[nodiscard]] bool has_room() const;
  // Once, from the loop, as soon as there is room or all is dropped. An empty function: not any
  // more.
  void when_room(std::function<void()> call);
  // The same as soon as all is written, or dropped since it is stuck. Takes the place of the other.
  void when_written(std::function<void()> call);
  // Called from the loop after the first write that failed. The descriptor goes on being tried:
  // a full disk may get room.
  void on_error(std::function<void(int error)> call);

  // Gives up what is held. What is written from now on comes after the piece that is under way.
  void drop();
  // False: only ending the process gets past the thread.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] Losses losses() const;

 private:
  struct State;

  bool start();
  void write_here(std::string_view bytes);
  void watch_for_stuck();
  void when_held_at_most(std::size_t most, std::function<void()> call);
  void tell_room();

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  std::function<void()> room_call_;
  std::function<void(int)> error_call_;
  std::shared_ptr<State> state_;  // the thread's too
  std::thread thread_;
};

}  // namespace ddp::launcher
