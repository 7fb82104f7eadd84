#include "rendezvous/core/key_value_store.h"

#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

constexpr StoreSessionId kNobody{std::numeric_limits<std::uint64_t>::max()};

bool is_notice(std::string_view key) {
  return key.substr(0, kNoticePrefix.size()) == kNoticePrefix;
}

// As C++ stoll: white space and a sign may lead, what follows the digits is ignored. Nothing where
// stoll would throw.
std::optional<std::int64_t> parse_number(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

// Wraps around, as the sum of PyTorch's server does.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

SessionFate KeyValueStore::handle(Asker asker, const StoreRequest& request, StoreOutput& out) {
  asker_ = asker.session;
  // A client of dialect A says nothing when its WAIT times out. It is synchronous, so a new request
  // proves that it has given up; a late reply to the WAIT would shift all that follow.
  if (asker.dialect == StoreDialect::a && !waits_.empty()) forget(asker.session);
  switch (request.code) {
    case StoreCode::validate:
      return SessionFate::keep;
    case StoreCode::set:
      return set(request, out);
    case StoreCode::compare_set:
      return compare_set(request, out);
    case StoreCode::get:
      return get(asker.dialect, request, out);
    case StoreCode::add:
      return add(request, out);
    case StoreCode::check:
      append_byte(out.reply, all_set(request.list) ? StoreReply::ready : StoreReply::not_ready);
      return SessionFate::keep;
    case StoreCode::wait:
      return wait(request, out);
    case StoreCode::get_num_keys:
      append_i64(out.reply, static_cast<std::int64_t>(keys_));
      return SessionFate::keep;
    case StoreCode::delete_key:
      return delete_key(request, out);
    case StoreCode::append:
      return append(request, out);
    case StoreCode::multi_get:
      return multi_get(request, out);
    case StoreCode::multi_set:
      return multi_set(request, out);
    case StoreCode::cancel_wait:
      forget(asker.session);
      append_byte(out.reply, StoreReply::wait_cancelled);
      return SessionFate::keep;
    case StoreCode::ping:
      append_u32(out.reply, static_cast<std::uint32_t>(request.number));
      return SessionFate::keep;
  }
  return SessionFate::close;
}

void KeyValueStore::forget(StoreSessionId session) {
  const auto found = waits_.find(session.value);
  if (found == waits_.end()) return;
  for (const Registration& registration : found->second.registrations) {
    bytes_ -= kWaitCost;
    if (registration.met) continue;
    registration.entry->second.waiters.erase(registration.place);
    drop_if_unused(*registration.entry);
  }
  waits_.erase(found);
}

void KeyValueStore::set_notice(std::string_view key, std::string_view value,
                               std::vector<StoreSessionId>& woken) {
  DDP_ASSERT(is_notice(key));
  asker_ = kNobody;
  StoreOutput out;
  put(entry_of(key), value, out);
  woken.insert(woken.end(), out.woken.begin(), out.woken.end());
}

bool KeyValueStore::charge(std::size_t bytes) {
  if (bytes > limits_.total || bytes_ > limits_.total - bytes) return false;
  bytes_ += bytes;
  return true;
}

void KeyValueStore::release(std::size_t bytes) {
  bytes_ -= bytes;
}

SessionFate KeyValueStore::set(const StoreRequest& request, StoreOutput& out) {
  if (is_notice(request.key) || !has_room(request.key, request.value.size())) {
    return SessionFate::close;
  }
  put(entry_of(request.key), request.value, out);
  return SessionFate::keep;
}

SessionFate KeyValueStore::append(const StoreRequest& request, StoreOutput& out) {
  if (is_notice(request.key)) return SessionFate::close;
  const std::string* old = find(request.key);
  const std::size_t old_size = old == nullptr ? 0 : old->size();
  const std::size_t size = old_size + request.value.size();
  if (size > limits_.value || !has_room(request.key, size)) return SessionFate::close;
  Entry& entry = entry_of(request.key);
  if (!entry.second.value) {
    put(entry, request.value, out);
    return SessionFate::keep;
  }
  entry.second.value->append(request.value);
  bytes_ += request.value.size();
  return SessionFate::keep;
}

SessionFate KeyValueStore::compare_set(const StoreRequest& request, StoreOutput& out) {
  if (is_notice(request.key)) return SessionFate::close;
  const std::string* old = find(request.key);
  const bool store = old == nullptr ? request.value.empty() : *old == request.value;
  if (!store) {
    // For an absent key PyTorch's servers return the expectation, and its clients rely on that.
    append_bytes(out.reply, old == nullptr ? request.value : std::string_view{*old});
    return SessionFate::keep;
  }
  if (!has_room(request.key, request.desired.size())) return SessionFate::close;
  put(entry_of(request.key), request.desired, out);
  append_bytes(out.reply, request.desired);
  return SessionFate::keep;
}

SessionFate KeyValueStore::get(StoreDialect dialect, const StoreRequest& request,
                               StoreOutput& out) const {
  const std::string* value = find(request.key);
  if (value == nullptr && dialect == StoreDialect::a) return SessionFate::close;
  append_bytes(out.reply, value == nullptr ? std::string_view{} : std::string_view{*value});
  return SessionFate::keep;
}

SessionFate KeyValueStore::multi_get(const StoreRequest& request, StoreOutput& out) const {
  // Measured before it is made: a short request can ask for more than all memory.
  std::size_t size = 0;
  for (const std::string_view key : request.list) {
    const std::string* value = find(key);
    size += sizeof(std::uint64_t) + (value == nullptr ? 0 : value->size());
    if (size > limits_.unsent) return SessionFate::close;
  }
  for (const std::string_view key : request.list) {
    const std::string* value = find(key);
    append_bytes(out.reply, value == nullptr ? std::string_view{} : std::string_view{*value});
  }
  return SessionFate::keep;
}

SessionFate KeyValueStore::multi_set(const StoreRequest& request, StoreOutput& out) {
  // All is checked before anything is stored: never in part.
  std::size_t more = 0;
  for (auto at = request.list.begin(); at != request.list.end();) {
    const std::string_view key = *at++;
    const std::string_view value = *at++;
    if (is_notice(key)) return SessionFate::close;
    const std::string* old = find(key);
    if (old == nullptr) more += key.size() + kEntryCost;
    if (old == nullptr || value.size() > old->size()) {
      more += value.size() - (old == nullptr ? 0 : old->size());
    }
  }
  if (bytes_ + more > limits_.total) return SessionFate::close;
  for (auto at = request.list.begin(); at != request.list.end();) {
    const std::string_view key = *at++;
    const std::string_view value = *at++;
    put(entry_of(key), value, out);
  }
  return SessionFate::keep;
}

SessionFate KeyValueStore::add(const StoreRequest& request, StoreOutput& out) {
  if (is_notice(request.key)) return SessionFate::close;
  std::int64_t sum = request.number;
  if (const std::string* old = find(request.key)) {
    const auto number = parse_number(*old);
    if (!number) return SessionFate::close;
    sum = wrapping_sum(*number, sum);
  }
  char text[24];
  const auto end = std::to_chars(std::begin(text), std::end(text), sum).ptr;
  const std::string_view value{text, static_cast<std::size_t>(end - text)};
  if (!has_room(request.key, value.size())) return SessionFate::close;
  put(entry_of(request.key), value, out);
  append_i64(out.reply, sum);
  return SessionFate::keep;
}

SessionFate KeyValueStore::delete_key(const StoreRequest& request, StoreOutput& out) {
  if (is_notice(request.key)) return SessionFate::close;
  const auto found = slots_.find(request.key);
  const bool existed = found != slots_.end() && found->second.value.has_value();
  if (existed) {
    bytes_ -= found->second.value->size();
    --keys_;
    found->second.value.reset();
    drop_if_unused(*found);
  }
  append_i64(out.reply, existed ? 1 : 0);
  return SessionFate::keep;
}

SessionFate KeyValueStore::wait(const StoreRequest& request, StoreOutput& out) {
  forget(asker_);  // a second WAIT replaces the first
  std::size_t missing = 0;
  std::size_t cost = 0;
  for (const std::string_view key : request.list) {
    if (find(key) != nullptr) continue;
    ++missing;
    cost += key.size() + kEntryCost + kWaitCost;
  }
  if (missing == 0) {
    append_byte(out.reply, StoreReply::stop_waiting);
    return SessionFate::keep;
  }
  if (bytes_ + cost > limits_.total) return SessionFate::close;
  Wait& wait = waits_[asker_.value];
  wait.missing = missing;
  wait.registrations.reserve(missing);
  for (const std::string_view key : request.list) {
    if (find(key) != nullptr) continue;
    Entry& entry = entry_of(key);
    Waiters& waiters = entry.second.waiters;
    // A key that is named twice is registered twice and met twice at once: still one reply.
    waiters.push_back({asker_, wait.registrations.size()});
    wait.registrations.push_back({&entry, std::prev(waiters.end())});
    bytes_ += kWaitCost;
  }
  return SessionFate::keep;
}

const std::string* KeyValueStore::find(std::string_view key) const {
  const auto found = slots_.find(key);
  return found == slots_.end() || !found->second.value ? nullptr : &*found->second.value;
}

bool KeyValueStore::all_set(const StringList& keys) const {
  for (const std::string_view key : keys) {
    if (find(key) == nullptr) return false;
  }
  return true;
}

bool KeyValueStore::has_room(std::string_view key, std::size_t value_size) const {
  std::size_t after = bytes_ + value_size;
  const auto found = slots_.find(key);
  if (found == slots_.end()) {
    after += key.size() + kEntryCost;
  } else if (found->second.value) {
    after -= found->second.value->size();
  }
  return after <= limits_.total;
}

KeyValueStore::Entry& KeyValueStore::entry_of(std::string_view key) {
  if (const auto found = slots_.find(key); found != slots_.end()) return *found;
  bytes_ += key.size() + kEntryCost;
  return *slots_.emplace(std::string{key}, Slot{}).first;
}

void KeyValueStore::put(Entry& entry, std::string_view value, StoreOutput& out) {
  Slot& slot = entry.second;
  if (slot.value) {
    bytes_ -= slot.value->size();
    // A string that shrinks in place keeps its memory, which nobody would count.
    if (slot.value->capacity() / 2 > value.size() + kEntryCost) slot.value.emplace();
    slot.value->assign(value);
  } else {
    slot.value.emplace(value);
    if (!is_notice(entry.first)) ++keys_;
  }
  bytes_ += value.size();
  if (!slot.waiters.empty()) wake(entry, out);
}

void KeyValueStore::wake(Entry& entry, StoreOutput& out) {
  const Waiters waiters = std::exchange(entry.second.waiters, {});
  for (const Waiter& waiter : waiters) {
    const auto found = waits_.find(waiter.session.value);
    DDP_ASSERT(found != waits_.end());
    Wait& wait = found->second;
    wait.registrations[waiter.registration].met = true;
    if (--wait.missing > 0) continue;
    bytes_ -= kWaitCost * wait.registrations.size();
    waits_.erase(found);
    if (waiter.session == asker_) {
      append_byte(out.reply, StoreReply::stop_waiting);
    } else {
      out.woken.push_back(waiter.session);
    }
  }
}

void KeyValueStore::drop_if_unused(Entry& entry) {
  if (entry.second.value || !entry.second.waiters.empty()) return;
  bytes_ -= entry.first.size() + kEntryCost;
  slots_.erase(slots_.find(entry.first));
}

}  // namespace ddp::rendezvous
