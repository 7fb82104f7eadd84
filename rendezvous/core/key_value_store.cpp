#include "rendezvous/core/key_value_store.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

// A value that changes keeps its memory if no more of that than this is unused then.
constexpr std::size_t kUnused = 64;

constexpr StoreSessionId kNobody{std::numeric_limits<std::uint64_t>::max()};

bool keeps_memory(const std::string& value, std::size_t size) {
  return size <= value.capacity() && value.capacity() - size <= kUnused;
}

// Wraps around, as the sum of PyTorch's server does.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

bool writes(const StoreRequest& request) {
  switch (request.code) {
    case StoreCode::set:
    case StoreCode::compare_set:
    case StoreCode::add:
    case StoreCode::append:
    case StoreCode::delete_key:
    case StoreCode::queue_push:
    case StoreCode::queue_pop:
    case StoreCode::barrier:
      return true;
    default:
      return false;
  }
}

}  // namespace

SessionFate KeyValueStore::handle(Asker asker, const StoreRequest& request, StoreOutput& out) {
  asker_ = asker.session;
  // A legacy client says nothing when its WAIT times out. It is synchronous, so a new request
  // proves that it has given up; a late reply to the WAIT would shift all that follow.
  if (asker.dialect != StoreDialect::c && !waits_.empty()) waits_.cancel(asker.session);
  if (!queues_.nothing_promised()) {
    const bool pops = request.code == StoreCode::queue_pop;
    const auto unseen = queues_.settle(asker.session, pops ? &request.key : nullptr);
    if (unseen) wake_one(*unseen, out);
  }
  if (writes(request) && is_notice(request.key)) return SessionFate::close;
  return answer(asker.dialect, request, out);
}

SessionFate KeyValueStore::answer(StoreDialect dialect, const StoreRequest& request,
                                  StoreOutput& out) {
  switch (request.code) {
    case StoreCode::validate:
      return SessionFate::keep;
    case StoreCode::set:
      return set(request.key, request.value, out);
    case StoreCode::compare_set:
      return compare_set(request, out);
    case StoreCode::get:
      return get(dialect, request.key, out);
    case StoreCode::add:
      return add(request, out);
    case StoreCode::check:
      append_byte(out.reply, all_exist(request.list) ? StoreReply::ready : StoreReply::not_ready);
      return SessionFate::keep;
    case StoreCode::wait:
      return wait(request.list, out);
    case StoreCode::get_num_keys:
      append_u64(out.reply, listed_.size());
      return SessionFate::keep;
    case StoreCode::delete_key:
      return delete_key(request.key, out);
    case StoreCode::append:
      return append(request, out);
    case StoreCode::multi_get:
      return multi_get(dialect, request.list, out);
    case StoreCode::multi_set:
      return multi_set(request, out);
    case StoreCode::cancel_wait:
      waits_.cancel(asker_);
      append_byte(out.reply, StoreReply::wait_cancelled);
      return SessionFate::keep;
    case StoreCode::ping:
      append_u32(out.reply, static_cast<std::uint32_t>(request.number));
      return SessionFate::keep;
    case StoreCode::queue_push:
      return push(request, out);
    case StoreCode::queue_pop:
      return pop(request.key, out);
    case StoreCode::queue_len:
      append_u64(out.reply, queues_.size(request.key));
      return SessionFate::keep;
    case StoreCode::list_keys:
      return list_keys(out);
    case StoreCode::barrier:
      return barrier(request, out);
    case StoreCode::watch_key:
      return watch(request.key, out);
  }
  return SessionFate::close;
}

void KeyValueStore::forget(StoreSessionId session, StoreOutput& out) {
  asker_ = kNobody;
  waits_.cancel(session);
  watches_.forget(session);
  if (queues_.nothing_promised()) return;
  if (const auto unseen = queues_.settle(session, nullptr)) wake_one(*unseen, out);
}

void KeyValueStore::set_notice(std::string_view key, std::string_view value, StoreOutput& out) {
  DDP_ASSERT(is_notice(key));
  asker_ = kNobody;
  put(find(key), key, value, out);
}

bool KeyValueStore::charge(std::size_t bytes) {
  if (!budget_.has_room(bytes)) return false;
  budget_.charge(bytes);
  return true;
}

void KeyValueStore::wake_one(std::string_view queue, StoreOutput& out) {
  if (waits_.empty()) return;
  const auto woken = waits_.pushed(queue);
  if (!woken) return;
  queues_.promise(*woken, queue);
  wake({&*woken, 1}, out);
}

KeyValueStore::Entry* KeyValueStore::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.get();
}

bool KeyValueStore::exists(std::string_view name) const {
  return entries_.contains(name) || queues_.size(name) > 0;
}

bool KeyValueStore::all_exist(const StringList& names) const {
  for (const std::string_view name : names) {
    if (!exists(name)) return false;
  }
  return true;
}

std::optional<std::int64_t> KeyValueStore::sum_at(const Entry* at, std::int64_t difference) {
  if (at == nullptr) return difference;
  auto number = parse_decimal(at->value);
  if (number) number = wrapping_sum(*number, difference);
  return number;
}

std::size_t KeyValueStore::cost(const std::string& value) {
  return value.capacity() > room_in_place() ? value.capacity() : value.size();
}

std::size_t KeyValueStore::cost_of_put(const Entry* at, std::size_t size) {
  const bool keeps = at != nullptr && keeps_memory(at->value, size);
  return keeps && at->value.capacity() > room_in_place() ? at->value.capacity() : size;
}

bool KeyValueStore::has_room(const Entry* at, std::string_view key, std::size_t value_cost,
                             std::size_t beside) const {
  std::size_t more = value_cost + beside + (at == nullptr ? key.size() + kEntryCost : 0);
  const std::size_t less = at == nullptr ? 0 : cost(at->value);
  more -= std::min(more, less);
  more += size_of_news(key, at == nullptr ? 0 : at->value.size(), value_cost);
  return budget_.has_room(more);
}

std::size_t KeyValueStore::size_of_news(std::string_view key, std::size_t before,
                                        std::size_t after) const {
  if (watches_.empty() || watches_.watchers(key) == nullptr) return 0;
  return 1 + 3 * sizeof(std::uint64_t) + key.size() + before + after;
}

void KeyValueStore::put(Entry* at, std::string_view key, std::string_view value, StoreOutput& out) {
  if (at != nullptr) {
    if (!watches_.empty()) tell_watchers(KeyEvent::updated, key, at->value, value, out);
    budget_.release(cost(at->value));
    if (keeps_memory(at->value, value.size())) {
      at->value.assign(value);
    } else {
      std::string{value}.swap(at->value);  // assigned, a short one would keep the memory
    }
    budget_.charge(cost(at->value));
  } else {
    auto entry = std::make_unique<Entry>();
    entry->key = key;
    entry->value = value;
    entry->place = listed_.size();
    if (!is_notice(key)) listed_.push_back(entry.get());
    budget_.charge(key.size() + kEntryCost + cost(entry->value));
    const std::string_view own_key = entry->key;
    entries_.emplace(own_key, std::move(entry));
    if (!watches_.empty()) tell_watchers(KeyEvent::created, key, {}, value, out);
  }
  if (!waits_.empty()) value_changed(key, value, out);
}

void KeyValueStore::value_changed(std::string_view key, std::string_view value, StoreOutput& out) {
  std::vector<StoreSessionId> woken;
  waits_.value_set(key, value, woken);
  wake(woken, out);
}

void KeyValueStore::wake(std::span<const StoreSessionId> sessions, StoreOutput& out) const {
  for (const StoreSessionId session : sessions) {
    if (session == asker_) {
      append_byte(out.reply, StoreReply::stop_waiting);
    } else {
      out.woken.push_back(session);
    }
  }
}

void KeyValueStore::tell_watchers(KeyEvent event, std::string_view key, std::string_view before,
                                  std::string_view after, StoreOutput& out) const {
  const auto* watchers = watches_.watchers(key);
  if (watchers == nullptr) return;
  StoreNews news;
  append_byte(news.bytes, event);
  append_bytes(news.bytes, key);
  append_bytes(news.bytes, before);
  append_bytes(news.bytes, after);
  for (const StoreSessionId session : *watchers) {
    if (session == asker_) {
      out.reply.append(news.bytes);
    } else {
      news.to.push_back(session);
    }
  }
  if (!news.to.empty()) out.news.push_back(std::move(news));
}

}  // namespace ddp::rendezvous
