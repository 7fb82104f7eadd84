// The bytes of PyTorch's TCPStore protocol, all its dialects: a decoder of requests for servers,
// encoders of requests for clients and of replies (PROTOCOL.md, "Worker store").
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace ddp::rendezvous {

struct StoreLimits {
  std::size_t key = 8U << 10;
  std::size_t value = 8U << 20;
  std::size_t keys = 131'072;       // in one request
  std::size_t request = 64U << 20;  // bytes of one request
  std::size_t unsent = 64U << 20;   // bytes of replies that one client has not taken yet
  std::size_t total = 1024U << 20;  // of everything that a store holds
};

enum class StoreDialect : std::uint8_t {
  a,  // PyTorch up to 2.0
  b,  // PyTorch 2.1
  c,  // PyTorch 2.2 and later; our SDK
};

enum class StoreCode : std::uint8_t {
  validate,
  set,
  compare_set,
  get,
  add,
  check,
  wait,
  get_num_keys,
  delete_key,
  append,
  multi_get,
  multi_set,
  cancel_wait,
  ping,
  queue_push,
  queue_pop,
  queue_len,
  list_keys,
  barrier,
  watch_key,  // dialect A only
};

// Strings that lie back to back in somebody else's buffer, each behind its length.
class StringList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    Iterator(const char* at, std::size_t left) : at_(at), left_(left) {}
    [[nodiscard]] std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.left_ == b.left_; }

   private:
    const char* at_ = nullptr;
    std::size_t left_ = 0;
  };

  StringList() = default;
  // `raw` holds exactly `count` strings.
  StringList(std::string_view raw, std::size_t count) : raw_(raw), count_(count) {}
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] Iterator begin() const { return {raw_.data(), count_}; }
  [[nodiscard]] Iterator end() const { return {}; }
  [[nodiscard]] std::string_view raw() const { return raw_; }

 private:
  std::string_view raw_;
  std::size_t count_ = 0;
};

// Views into the buffer that was decoded: valid as long as that is.
struct StoreRequest {
  StoreCode code = StoreCode::validate;
  std::string_view key{};
  std::string_view value{};    // SET, APPEND, QUEUE_PUSH; COMPARE_SET: what is expected
  std::string_view desired{};  // COMPARE_SET
  std::int64_t number = 0;     // ADD: the difference; PING: the nonce; BARRIER: how many must come
  StringList list{};  // CHECK, WAIT, MULTI_GET: keys; MULTI_SET: key, value, key, value, …
};

enum class DecodeState : std::uint8_t { need_more, complete, malformed };

// Passive: reads what it is given and remembers how far it has looked, so that a request that
// arrives in a thousand pieces is still read once. Holds no bytes.
//
// Nothing in a legacy stream says whether it is A or B. One that is read as A shows itself to be B
// by a code that A lacks, or by code 7 after another request: that is DELETE_KEY in B, and in A
// WATCH_KEY, for which clients keep a connection of its own. It is read as B from there on.
class StoreRequestDecoder {
 public:
  StoreRequestDecoder(StoreDialect dialect, const StoreLimits& limits)
      : dialect_(dialect), limits_(limits) {}

  // `bytes` begins where the current request begins. After need_more: call again with the same
  // bytes and those that follow (they may have moved). After complete: the next request begins
  // size() bytes later. After malformed: the connection is of no more use.
  [[nodiscard]] DecodeState decode(std::string_view bytes);

  [[nodiscard]] StoreDialect dialect() const { return dialect_; }         // of the latest request
  [[nodiscard]] const StoreRequest& request() const { return request_; }  // after complete
  [[nodiscard]] std::size_t size() const { return position_; }            // after complete
  [[nodiscard]] const char* reason() const { return reason_; }            // after malformed

 private:
  struct Slice {
    std::size_t offset = 0;
    std::size_t length = 0;
  };

  DecodeState begin(std::string_view bytes);
  DecodeState string(std::string_view bytes, bool is_key, Slice& slice);
  DecodeState number(std::string_view bytes, std::size_t width);
  DecodeState list(std::string_view bytes, bool pairs);
  DecodeState fail(const char* reason);
  void publish(std::string_view bytes);

  StoreDialect dialect_;
  bool only_watches_ = true;  // whatever came so far could be WATCH_KEY
  StoreLimits limits_;
  const char* field_ = nullptr;  // what is still expected of this request; null: its code
  std::size_t position_ = 0;     // everything in front of it is understood
  std::size_t strings_ = 0;      // that slices_ holds
  std::size_t list_size_ = 0;
  std::size_t list_left_ = 0;
  std::size_t list_begin_ = 0;
  bool in_list_ = false;
  bool finished_ = true;
  Slice slices_[3];
  StoreRequest request_;
  const char* reason_ = "";
};

// Requests, as a client sends them; appended to `out`. Dialect C; no reply follows SET, APPEND and
// the greeting.
inline constexpr std::uint32_t kStoreMagic = 0x3C85'F7CE;

void encode_validate(std::string& out);  // must come first on a connection
void encode_ping(std::string& out, std::uint32_t nonce);
void encode_set(std::string& out, std::string_view key, std::string_view value);
void encode_append(std::string& out, std::string_view key, std::string_view value);
void encode_compare_set(std::string& out, std::string_view key, std::string_view expected,
                        std::string_view desired);
void encode_get(std::string& out, std::string_view key);
void encode_add(std::string& out, std::string_view key, std::int64_t difference);
void encode_check(std::string& out, std::span<const std::string_view> keys);
void encode_wait(std::string& out, std::span<const std::string_view> keys);
void encode_multi_get(std::string& out, std::span<const std::string_view> keys);
// key, value, key, value, …
void encode_multi_set(std::string& out, std::span<const std::string_view> pairs);
void encode_delete_key(std::string& out, std::string_view key);
void encode_get_num_keys(std::string& out);
void encode_cancel_wait(std::string& out);

// Any request in any dialect; one that the dialect lacks is a broken invariant.
void encode_request(std::string& out, StoreDialect dialect, const StoreRequest& request);

// Replies, and the pieces that both directions are made of.
enum class StoreReply : std::uint8_t {
  ready = 0,           // to CHECK
  not_ready = 1,       // to CHECK
  stop_waiting = 0,    // to WAIT and BARRIER
  wait_cancelled = 1,  // to CANCEL_WAIT
  watching = 3,        // to WATCH_KEY
};

// What begins the news of a watched key; its name, its old and its new value follow.
enum class KeyEvent : std::uint8_t { updated, created, deleted };

void append_byte(std::string& out, StoreReply reply);
void append_byte(std::string& out, KeyEvent event);
void append_u32(std::string& out, std::uint32_t value);
void append_u64(std::string& out, std::uint64_t value);
void append_i64(std::string& out, std::int64_t value);
void append_bytes(std::string& out, std::string_view bytes);  // with its length in front

// What a client reads back; `bytes` holds at least 8.
[[nodiscard]] std::uint64_t read_u64(std::string_view bytes);
[[nodiscard]] std::int64_t read_i64(std::string_view bytes);

}  // namespace ddp::rendezvous
