#include "rendezvous/core/tcpstore_wire.h"

#include <array>
#include <cstring>
#include <optional>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

constexpr std::size_t kLengthWidth = sizeof(std::uint64_t);

// A request is its code and these fields: K key, V value, I i64, N u32, M the magic, L a list of
// keys, P a list of pairs.
struct Shape {
  StoreCode code;
  std::optional<std::uint8_t> a;
  std::optional<std::uint8_t> b;
  std::optional<std::uint8_t> c;
  const char* fields;

  [[nodiscard]] constexpr const std::optional<std::uint8_t>& in(StoreDialect dialect) const {
    return dialect == StoreDialect::a ? a : dialect == StoreDialect::b ? b : c;
  }
};

constexpr auto kNone = std::nullopt;

// In the order of StoreCode.
constexpr std::array<Shape, 20> kShapes{{
    {StoreCode::validate, kNone, kNone, 0, "M"},
    {StoreCode::set, 0, 0, 1, "KV"},
    {StoreCode::compare_set, 1, 1, 2, "KVV"},
    {StoreCode::get, 2, 2, 3, "K"},
    {StoreCode::add, 3, 3, 4, "KI"},
    {StoreCode::check, 4, 4, 5, "L"},
    {StoreCode::wait, 5, 5, 6, "L"},
    {StoreCode::get_num_keys, 6, 6, 7, ""},
    {StoreCode::delete_key, 8, 7, 8, "K"},
    {StoreCode::append, kNone, 8, 9, "KV"},
    {StoreCode::multi_get, kNone, 9, 10, "L"},
    {StoreCode::multi_set, kNone, 10, 11, "P"},
    {StoreCode::cancel_wait, kNone, 11, 12, ""},
    {StoreCode::ping, kNone, kNone, 13, "N"},
    {StoreCode::queue_push, kNone, kNone, 14, "KV"},
    {StoreCode::queue_pop, kNone, kNone, 15, "K"},
    {StoreCode::queue_len, kNone, kNone, 16, "K"},
    {StoreCode::list_keys, kNone, kNone, 17, ""},
    {StoreCode::barrier, kNone, kNone, 18, "KI"},
    {StoreCode::watch_key, 7, kNone, kNone, "K"},
}};

constexpr std::size_t kCodes = 19;
using CodeTable = std::array<const Shape*, kCodes>;

constexpr CodeTable table_of(StoreDialect dialect) {
  CodeTable table{};
  for (const Shape& shape : kShapes) {
    if (const auto& code = shape.in(dialect)) table[*code] = &shape;
  }
  return table;
}

constexpr CodeTable kTables[] = {table_of(StoreDialect::a), table_of(StoreDialect::b),
                                 table_of(StoreDialect::c)};

const Shape* shape_of(StoreDialect dialect, char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return code < kCodes ? kTables[static_cast<std::size_t>(dialect)][code] : nullptr;
}

constexpr char kWatchOrDelete = 7;
constexpr char kFirstOfB = 9;
constexpr char kLastOfB = 11;

template <typename Integer>
Integer load(const char* at) {
  Integer value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename Integer>
void store(std::string& out, Integer value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_code(std::string& out, StoreDialect dialect, StoreCode code) {
  const auto& byte = kShapes[static_cast<std::size_t>(code)].in(dialect);
  DDP_ASSERT(byte.has_value());
  out.push_back(static_cast<char>(*byte));
}

void append_list(std::string& out, StoreCode code, std::size_t count,
                 std::span<const std::string_view> strings) {
  append_code(out, StoreDialect::c, code);
  append_u64(out, count);
  for (const std::string_view string : strings) append_bytes(out, string);
}

void append_key(std::string& out, StoreCode code, std::string_view key) {
  append_code(out, StoreDialect::c, code);
  append_bytes(out, key);
}

}  // namespace

std::string_view StringList::Iterator::operator*() const {
  return {at_ + kLengthWidth, load<std::uint64_t>(at_)};
}

StringList::Iterator& StringList::Iterator::operator++() {
  at_ += kLengthWidth + load<std::uint64_t>(at_);
  --left_;
  return *this;
}

DecodeState StoreRequestDecoder::decode(std::string_view bytes) {
  if (finished_) {
    position_ = 0;
    field_ = nullptr;
    finished_ = false;
  }
  DDP_ASSERT(bytes.size() >= position_);
  if (field_ == nullptr) {
    if (const DecodeState state = begin(bytes); state != DecodeState::complete) return state;
  }
  for (; *field_ != '\0'; ++field_) {
    DecodeState state = DecodeState::complete;
    switch (*field_) {
      case 'K':
      case 'V':
        state = string(bytes, *field_ == 'K', slices_[strings_]);
        if (state == DecodeState::complete) ++strings_;
        break;
      case 'I':
        state = number(bytes, sizeof(std::int64_t));
        break;
      case 'N':
        state = number(bytes, sizeof(std::uint32_t));
        break;
      case 'M':
        state = number(bytes, sizeof(std::uint32_t));
        if (state == DecodeState::complete && request_.number != kStoreMagic) {
          return fail("VALIDATE with another magic number");
        }
        break;
      default:
        state = list(bytes, *field_ == 'P');
        break;
    }
    if (state != DecodeState::complete) return state;
  }
  if (position_ > limits_.request) return fail("request over the limit");
  publish(bytes);
  return DecodeState::complete;
}

DecodeState StoreRequestDecoder::begin(std::string_view bytes) {
  if (bytes.empty()) return DecodeState::need_more;
  const char code = bytes.front();
  if (dialect_ == StoreDialect::a) {
    const bool deletes = code == kWatchOrDelete && !only_watches_;
    if (deletes || (code >= kFirstOfB && code <= kLastOfB)) dialect_ = StoreDialect::b;
    if (code != kWatchOrDelete) only_watches_ = false;
  }
  const Shape* shape = shape_of(dialect_, code);
  if (shape == nullptr) return fail("unknown request");
  request_.code = shape->code;
  request_.number = 0;
  field_ = shape->fields;
  position_ = 1;
  strings_ = 0;
  in_list_ = false;
  return DecodeState::complete;
}

DecodeState StoreRequestDecoder::string(std::string_view bytes, bool is_key, Slice& slice) {
  if (bytes.size() - position_ < kLengthWidth) return DecodeState::need_more;
  const auto length = load<std::uint64_t>(bytes.data() + position_);
  if (is_key && length > limits_.key) return fail("key over the limit");
  if (!is_key && length > limits_.value) return fail("value over the limit");
  // The lengths above are small, so this sum can't overflow.
  const std::size_t end = position_ + kLengthWidth + length;
  if (end > limits_.request) return fail("request over the limit");
  if (bytes.size() < end) return DecodeState::need_more;
  slice = {position_ + kLengthWidth, length};
  position_ = end;
  return DecodeState::complete;
}

DecodeState StoreRequestDecoder::number(std::string_view bytes, std::size_t width) {
  if (bytes.size() - position_ < width) return DecodeState::need_more;
  const char* at = bytes.data() + position_;
  request_.number =
      width == sizeof(std::int64_t) ? load<std::int64_t>(at) : load<std::uint32_t>(at);
  position_ += width;
  return DecodeState::complete;
}

DecodeState StoreRequestDecoder::list(std::string_view bytes, bool pairs) {
  if (!in_list_) {
    if (bytes.size() - position_ < kLengthWidth) return DecodeState::need_more;
    const auto count = load<std::uint64_t>(bytes.data() + position_);
    if (count > limits_.keys) return fail("number of keys over the limit");
    position_ += kLengthWidth;
    in_list_ = true;
    list_begin_ = position_;
    list_size_ = list_left_ = pairs ? 2 * count : count;
  }
  for (; list_left_ > 0; --list_left_) {
    Slice ignored;
    const bool is_key = !pairs || list_left_ % 2 == 0;
    const DecodeState state = string(bytes, is_key, ignored);
    if (state != DecodeState::complete) return state;
  }
  return DecodeState::complete;
}

DecodeState StoreRequestDecoder::fail(const char* reason) {
  reason_ = reason;
  return DecodeState::malformed;
}

void StoreRequestDecoder::publish(std::string_view bytes) {
  std::string_view* const views[] = {&request_.key, &request_.value, &request_.desired};
  for (std::size_t i = 0; i < std::size(views); ++i) {
    *views[i] =
        i < strings_ ? bytes.substr(slices_[i].offset, slices_[i].length) : std::string_view{};
  }
  request_.list = in_list_
                      ? StringList{bytes.substr(list_begin_, position_ - list_begin_), list_size_}
                      : StringList{};
  finished_ = true;
}

void encode_request(std::string& out, StoreDialect dialect, const StoreRequest& request) {
  append_code(out, dialect, request.code);
  const std::string_view strings[] = {request.key, request.value, request.desired};
  std::size_t next = 0;
  for (const char* field = kShapes[static_cast<std::size_t>(request.code)].fields; *field != '\0';
       ++field) {
    switch (*field) {
      case 'K':
      case 'V':
        append_bytes(out, strings[next++]);
        break;
      case 'I':
        append_i64(out, request.number);
        break;
      case 'N':
        append_u32(out, static_cast<std::uint32_t>(request.number));
        break;
      case 'M':
        append_u32(out, kStoreMagic);
        break;
      default:
        append_u64(out, *field == 'P' ? request.list.size() / 2 : request.list.size());
        out.append(request.list.raw());
        break;
    }
  }
}

void encode_validate(std::string& out) {
  append_code(out, StoreDialect::c, StoreCode::validate);
  append_u32(out, kStoreMagic);
}

void encode_ping(std::string& out, std::uint32_t nonce) {
  append_code(out, StoreDialect::c, StoreCode::ping);
  append_u32(out, nonce);
}

void encode_set(std::string& out, std::string_view key, std::string_view value) {
  append_key(out, StoreCode::set, key);
  append_bytes(out, value);
}

void encode_append(std::string& out, std::string_view key, std::string_view value) {
  append_key(out, StoreCode::append, key);
  append_bytes(out, value);
}

void encode_compare_set(std::string& out, std::string_view key, std::string_view expected,
                        std::string_view desired) {
  append_key(out, StoreCode::compare_set, key);
  append_bytes(out, expected);
  append_bytes(out, desired);
}

void encode_get(std::string& out, std::string_view key) {
  append_key(out, StoreCode::get, key);
}

void encode_add(std::string& out, std::string_view key, std::int64_t difference) {
  append_key(out, StoreCode::add, key);
  append_i64(out, difference);
}

void encode_check(std::string& out, std::span<const std::string_view> keys) {
  append_list(out, StoreCode::check, keys.size(), keys);
}

void encode_wait(std::string& out, std::span<const std::string_view> keys) {
  append_list(out, StoreCode::wait, keys.size(), keys);
}

void encode_multi_get(std::string& out, std::span<const std::string_view> keys) {
  append_list(out, StoreCode::multi_get, keys.size(), keys);
}

void encode_multi_set(std::string& out, std::span<const std::string_view> pairs) {
  DDP_ASSERT(pairs.size() % 2 == 0);
  append_list(out, StoreCode::multi_set, pairs.size() / 2, pairs);
}

void encode_delete_key(std::string& out, std::string_view key) {
  append_key(out, StoreCode::delete_key, key);
}

void encode_get_num_keys(std::string& out) {
  append_code(out, StoreDialect::c, StoreCode::get_num_keys);
}

void encode_cancel_wait(std::string& out) {
  append_code(out, StoreDialect::c, StoreCode::cancel_wait);
}

void append_byte(std::string& out, StoreReply reply) {
  out.push_back(static_cast<char>(reply));
}
void append_byte(std::string& out, KeyEvent event) {
  out.push_back(static_cast<char>(event));
}
void append_u32(std::string& out, std::uint32_t value) {
  store(out, value);
}
void append_u64(std::string& out, std::uint64_t value) {
  store(out, value);
}
void append_i64(std::string& out, std::int64_t value) {
  store(out, value);
}

void append_bytes(std::string& out, std::string_view bytes) {
  append_u64(out, bytes.size());
  out.append(bytes);
}

std::uint64_t read_u64(std::string_view bytes) {
  DDP_ASSERT(bytes.size() >= sizeof(std::uint64_t));
  return load<std::uint64_t>(bytes.data());
}

std::int64_t read_i64(std::string_view bytes) {
  DDP_ASSERT(bytes.size() >= sizeof(std::int64_t));
  return load<std::int64_t>(bytes.data());
}

}  // namespace ddp::rendezvous
