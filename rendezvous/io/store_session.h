// The TCPStore clients of one map: each connection is a session, and all of them share one
// KeyValueStore.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {

class StoreSession;

// What becomes of sessions, for whoever let them in.
struct StoreRoomHandlers {
  std::function<void(StoreSessionId)> on_in_use;  // has asked for something, the first time
  std::function<void(StoreSessionId)> on_left;
};

// One map and the sessions that use it. Sessions keep it alive until close_all().
class StoreRoom : public std::enable_shared_from_this<StoreRoom> {
 public:
  StoreRoom(const StoreLimits& limits, StoreRoomHandlers handlers);

  // A connection that speaks TCPStore; `already_read` are its first bytes. No id comes twice.
  void admit(StoreSessionId id, boost::asio::ip::tcp::socket socket, StoreDialect dialect,
             std::string_view already_read);
  // False: it has asked for something after all, or is about to.
  bool close_if_idle(StoreSessionId id);
  void set_notice(std::string_view key, std::string_view value);
  void close_all();

  [[nodiscard]] std::size_t number_of_sessions() const { return sessions_.size(); }
  [[nodiscard]] const KeyValueStore& store() const { return store_; }

 private:
  friend class StoreSession;

  // Sends what the store has for others than the one who asked, and empties it. Returns how much
  // work that was, in bytes copied.
  std::size_t deliver(StoreOutput& out);
  std::size_t wake();
  void send(StoreSessionId to, std::string_view bytes);

  StoreLimits limits_;
  StoreRoomHandlers handlers_;
  KeyValueStore store_;
  std::unordered_map<std::uint64_t, std::shared_ptr<StoreSession>> sessions_;
  // One of each for all sessions: a session that is silent holds no buffer.
  std::string input_;
  StoreOutput output_;
  std::vector<StoreSessionId> woken_;  // still to be sent their byte
  bool delivering_ = false;
  std::size_t large_buffers_ = 0;
};

// Never blocks: bytes are taken as they come, what cannot be sent at once is queued, and a client
// that doesn't read its replies isn't read from either.
class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  StoreSession(boost::asio::ip::tcp::socket socket, std::shared_ptr<StoreRoom> room,
               StoreSessionId id, StoreDialect dialect);

  void start(std::string_view already_read);
  void send(std::string_view bytes);
  void close();
  // Has asked for nothing, and no byte of it lies unread.
  [[nodiscard]] bool is_idle();

 private:
  void read();
  void on_read(std::size_t length);
  void adapt_buffer(std::size_t length);
  [[nodiscard]] std::span<char> buffer();
  void receive(std::string_view bytes);
  // Carries out the requests that are complete, but not more at once than others can wait for;
  // returns how many bytes they took.
  std::size_t carry_out(std::string_view bytes);
  bool carry_out_one();
  // Sends the replies that have gathered; returns how many bytes they were.
  std::size_t flush(StoreOutput& out);
  void go_on_later();
  void go_on();
  void wait_writable();
  void on_writable();
  [[nodiscard]] std::size_t unsent() const { return unsent_.size() - sent_; }
  [[nodiscard]] bool paused() const;
  void settle_account();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<StoreRoom> room_;
  StoreSessionId id_;
  StoreRequestDecoder decoder_;
  std::string pending_;  // the beginning of a request that is not complete, and what follows
  std::string unsent_;   // replies; the first sent_ bytes are gone
  std::size_t sent_ = 0;
  std::size_t charged_ = 0;  // what the room's limit knows of the two
  bool reading_ = false;     // a read is in flight, into small_
  bool writing_ = false;     // a wait for room to send is in flight
  bool has_more_ = false;    // requests are left for a turn that is to come
  bool in_use_ = false;      // has asked for something, a greeting not counted
  bool open_ = true;
  // Most requests are shorter than this: a buffer of the session's own spares the system call that
  // would ask for readiness alone. One that sends much at once is given a larger one meanwhile.
  std::array<char, 512> small_;
  std::unique_ptr<char[]> large_;
};

}  // namespace ddp::rendezvous
