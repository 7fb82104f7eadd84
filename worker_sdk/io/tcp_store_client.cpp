#include "worker_sdk/io/tcp_store_client.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <ddp/error.hpp>

namespace ddp::sdk {

using namespace rendezvous;  // NOLINT: the encoders' home; this file does nothing but call them

namespace {

// A request and its answer: the server answers at once, so this long a silence means that it is
// gone even if no packet says so.
constexpr Milliseconds kLongestReply{60'000};
// For a name that doesn't resolve yet (a service that is being set up), but no longer: most such
// names are misspelt.
constexpr Milliseconds kNameTimeout{60'000};
constexpr Milliseconds kFirstPause{10};
constexpr Milliseconds kLongestPause{1000};
// Somebody has died, perhaps with the store's host: the connection is worth this much patience.
constexpr Milliseconds kLastWord{500};

std::vector<std::string_view> views_of(const Keys& keys) {
  return {keys.begin(), keys.end()};
}

}  // namespace

std::string list_keys(const Keys& keys) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kMost); ++i) {
    text += (i == 0 ? "\"" : ", \"") + keys[i] + '"';
  }
  if (keys.size() > kMost) text += " and " + std::to_string(keys.size() - kMost) + " more";
  return text;
}

TcpStoreClient::TcpStoreClient(std::string host, std::uint16_t port, Milliseconds timeout)
    : host_(std::move(host)), port_(port), timeout_(timeout) {
  connect();
}

void TcpStoreClient::connect() {
  const Deadline deadline(timeout_);
  const Deadline name_deadline(std::min(timeout_, kNameTimeout));
  const std::string where = "the job's store at " + host_ + ":" + std::to_string(port_);
  std::string reason;
  for (Milliseconds pause = kFirstPause;; pause = std::min(pause * 3 / 2, kLongestPause)) {
    std::string failure = "it does not answer";
    try {
      return try_to_connect(deadline);
    } catch (const ConnectionLost& lost) {
      failure = lost.reason;
    } catch (const ConnectionTimeout&) {
    }
    // An attempt that the end of all attempts cut short says less than the one before it.
    if (reason.empty() || !deadline.passed()) reason = failure;
    if (name_deadline.passed() && reason.compare(0, 8, "the name") == 0) {
      throw Unavailable("cannot reach " + where + ": " + reason + "; is MASTER_ADDR right?");
    }
    if (deadline.passed()) break;
    std::this_thread::sleep_for(std::min(pause, deadline.remaining()));
  }
  throw Timeout("cannot reach " + where + " within " + in_seconds(timeout_) + ": " + reason +
                "; is the launcher of rank 0's node running, and the port open?");
}

// As PyTorch's client: the magic, then a PING whose answer shows that a store is listening.
void TcpStoreClient::try_to_connect(const Deadline& deadline) {
  Connection connection = Connection::open(host_, port_, deadline);
  const auto nonce = static_cast<std::uint32_t>(::getpid());
  std::string greeting;
  encode_validate(greeting);
  encode_ping(greeting, nonce);
  connection.send(greeting, deadline, {});
  std::string expected;
  append_u32(expected, nonce);
  const Deadline reply_deadline(std::min(deadline.remaining(), kLongestReply));
  // A server that speaks an older dialect closes the connection, or waits for the rest of what it
  // takes for a very long request.
  const auto not_ours = [](const std::string& what) {
    return ConnectionLost{"something listens there, but " + what +
                          ": perhaps the store of a PyTorch before 2.5 (a torchrun of 1.13, say), "
                          "whose protocol this library does not speak, or no store at all"};
  };
  std::string answer;
  try {
    answer = connection.receive(expected.size(), reply_deadline, {});
  } catch (const ConnectionLost& lost) {
    throw not_ours("the greeting fails (" + lost.reason + ")");
  } catch (const ConnectionTimeout&) {
    throw not_ours("it does not answer the greeting");
  }
  if (answer != expected) throw not_ours("it gave another answer to the greeting than a TCPStore");
  connection_.emplace(std::move(connection));
}

template <typename Body>
auto TcpStoreClient::use(Body&& body) {
  guard_.check();
  const std::lock_guard lock(mutex_);
  if (!connection_) lost("the connection broke before");
  try {
    return body();
  } catch (const ConnectionLost& error) {
    lost(error.reason);
  } catch (const ConnectionTimeout&) {
    lost("it does not answer");
  }
}

void TcpStoreClient::lost(const std::string& reason) {
  connection_.reset();
  throw Unavailable("the job's store at " + host_ + ":" + std::to_string(port_) +
                    " is lost: " + reason + "; the node of rank 0 may be gone");
}

void TcpStoreClient::check_size(std::string_view key, std::string_view value) const {
  if (key.size() > limits_.key) {
    throw InvalidUse("a store key may have " + std::to_string(limits_.key) +
                     " bytes, this one has " + std::to_string(key.size()));
  }
  if (value.size() > limits_.value) {
    throw InvalidUse("a store value may have " + std::to_string(limits_.value) +
                     " bytes, that of \"" + std::string(key) + "\" has " +
                     std::to_string(value.size()));
  }
}

// Half a request, or half an answer, would shift all that follows: so these never give up for
// another reason than the connection itself, and `watch_` is only asked while a WAIT is pending.
void TcpStoreClient::send(const std::string& request) {
  connection_->send(request, Deadline(kLongestReply), {});
}

std::string TcpStoreClient::receive(std::size_t size) {
  return connection_->receive(size, Deadline(kLongestReply), {});
}

std::string TcpStoreClient::receive_bytes() {
  const std::uint64_t size = read_u64(receive(8));
  if (size > limits_.request) throw ConnectionLost{"it sent nonsense"};
  return receive(size);
}

void TcpStoreClient::set(std::string_view key, std::string_view value) {
  check_size(key, value);
  use([&] {
    std::string request;
    encode_set(request, key, value);
    send(request);
  });
}

std::int64_t TcpStoreClient::add(std::string_view key, std::int64_t delta) {
  check_size(key);
  return use([&] {
    std::string request;
    encode_add(request, key, delta);
    send(request);
    return read_i64(receive(8));
  });
}

void TcpStoreClient::wait_locked(const Keys& keys, const Deadline& deadline) {
  std::string request;
  encode_wait(request, views_of(keys));
  send(request);
  try {
    static_cast<void>(connection_->receive(1, deadline, watch_));
    return;
  } catch (const ConnectionTimeout&) {
    // What follows talks to the server again, and that may fail too.
  } catch (const ddp::Error&) {  // from watch_: somebody has died
    cancel_wait_or_hang_up();
    throw;
  }
  if (cancel_wait(kLongestReply)) return;
  const Keys missing = find_missing(keys);
  throw Timeout("waited " + in_seconds(deadline.timeout()) + " for the store's " +
                (missing.size() == 1 ? "key " : "keys ") + list_keys(missing));
}

// True: the keys had come at the last moment, and the server's word of it crossed ours.
bool TcpStoreClient::cancel_wait(Milliseconds patience) {
  const Deadline deadline(patience);
  std::string request;
  encode_cancel_wait(request);
  connection_->send(request, deadline, {});
  const std::string first = connection_->receive(1, deadline, {});
  if (first[0] == static_cast<char>(StoreReply::wait_cancelled)) return false;
  static_cast<void>(connection_->receive(1, deadline, {}));
  return true;
}

// What has been learnt of a death counts more than the store, which may have died with it.
void TcpStoreClient::cancel_wait_or_hang_up() {
  try {
    static_cast<void>(cancel_wait(kLastWord));
  } catch (const ConnectionLost&) {
    connection_.reset();
  } catch (const ConnectionTimeout&) {
    connection_.reset();
  }
}

Keys TcpStoreClient::find_missing(const Keys& keys) {
  std::string requests;
  for (const std::string& key : keys) {
    const std::string_view one[] = {key};
    encode_check(requests, one);
  }
  send(requests);
  const std::string replies = receive(keys.size());
  Keys missing;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (replies[i] != static_cast<char>(StoreReply::ready)) missing.push_back(keys[i]);
  }
  return missing.empty() ? keys : missing;
}

void TcpStoreClient::wait(const Keys& keys, Milliseconds timeout) {
  for (const std::string& key : keys) check_size(key);
  use([&] { wait_locked(keys, Deadline(timeout)); });
}

std::vector<std::string> TcpStoreClient::get_all(const Keys& keys, Milliseconds timeout) {
  for (const std::string& key : keys) check_size(key);
  return use([&] {
    wait_locked(keys, Deadline(timeout));
    std::string request;
    if (keys.size() == 1) {
      encode_get(request, keys.front());
    } else {
      encode_multi_get(request, views_of(keys));
    }
    send(request);
    std::vector<std::string> values;
    for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(receive_bytes());
    return values;
  });
}

std::string TcpStoreClient::compare_set(std::string_view key, std::string_view expected,
                                        std::string_view desired) {
  check_size(key, expected);
  check_size(key, desired);
  return use([&] {
    std::string request;
    encode_compare_set(request, key, expected, desired);
    send(request);
    return receive_bytes();
  });
}

bool TcpStoreClient::delete_key(std::string_view key) {
  check_size(key);
  return use([&] {
    std::string request;
    encode_delete_key(request, key);
    send(request);
    return read_i64(receive(8)) > 0;
  });
}

std::int64_t TcpStoreClient::num_keys() {
  return use([&] {
    std::string request;
    encode_get_num_keys(request);
    send(request);
    return read_i64(receive(8));
  });
}

bool TcpStoreClient::check(const Keys& keys) {
  for (const std::string& key : keys) check_size(key);
  return use([&] {
    std::string request;
    encode_check(request, views_of(keys));
    send(request);
    return receive(1)[0] == static_cast<char>(StoreReply::ready);
  });
}

}  // namespace ddp::sdk
