#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/key_value_store.h"

// What each request does.
namespace ddp::rendezvous {
namespace {

// A number as the store keeps it.
class Decimal {
 public:
  explicit Decimal(std::int64_t number)
      : size_(static_cast<std::size_t>(
            std::to_chars(std::begin(text_), std::end(text_), number).ptr - text_)) {}
  [[nodiscard]] std::string_view text() const { return {text_, size_}; }

 private:
  char text_[24];
  std::size_t size_;
};

}  // namespace

// ---- keys

SessionFate KeyValueStore::set(std::string_view key, std::string_view value, StoreOutput& out) {
  Entry* const at = find(key);
  if (!has_room(at, key, cost_of_put(at, value.size()))) return SessionFate::close;
  put(at, key, value, out);
  return SessionFate::keep;
}

SessionFate KeyValueStore::append(const StoreRequest& request, StoreOutput& out) {
  Entry* const at = find(request.key);
  if (at == nullptr) return set(request.key, request.value, out);
  if (request.value.empty()) return SessionFate::keep;  // no change, and no news
  std::string& value = at->value;
  const std::size_t old_size = value.size();
  const std::size_t size = old_size + request.value.size();
  if (size > limits_.value) return SessionFate::close;
  std::size_t room = value.capacity();
  if (size > room) {
    // Some more, if there is room for that: many short pieces shall not copy the whole each time.
    room = at_least_on_heap(std::min(size + size / 2, limits_.value));
    if (!has_room(at, request.key, room)) room = at_least_on_heap(size);
  }
  const bool in_place = room <= room_in_place();
  if (!has_room(at, request.key, in_place ? size : room)) return SessionFate::close;
  budget_.release(cost(value));
  if (room > value.capacity()) {
    std::string grown;
    grown.reserve(room);
    value = std::move(grown.append(value));
  }
  value.append(request.value);
  budget_.charge(cost(value));
  const std::string_view before = std::string_view{value}.substr(0, old_size);
  if (!watches_.empty()) tell_watchers(KeyEvent::updated, request.key, before, value, out);
  if (!waits_.empty()) value_changed(request.key, value, out);
  return SessionFate::keep;
}

SessionFate KeyValueStore::compare_set(const StoreRequest& request, StoreOutput& out) {
  Entry* const at = find(request.key);
  const bool store = at == nullptr ? request.value.empty() : at->value == request.value;
  if (!store) {
    // For an absent key PyTorch's servers return the expectation, and its clients rely on that.
    append_bytes(out.reply, at == nullptr ? request.value : std::string_view{at->value});
    return SessionFate::keep;
  }
  const std::size_t value_cost = cost_of_put(at, request.desired.size());
  if (!has_room(at, request.key, value_cost)) return SessionFate::close;
  put(at, request.key, request.desired, out);
  append_bytes(out.reply, request.desired);
  return SessionFate::keep;
}

SessionFate KeyValueStore::get(StoreDialect dialect, std::string_view key, StoreOutput& out) const {
  const Entry* at = find(key);
  if (at == nullptr && dialect != StoreDialect::c) return SessionFate::close;
  append_bytes(out.reply, at == nullptr ? std::string_view{} : std::string_view{at->value});
  return SessionFate::keep;
}

SessionFate KeyValueStore::multi_get(StoreDialect dialect, const StringList& keys,
                                     StoreOutput& out) const {
  // Measured before it is made: a short request can ask for more than all memory.
  std::size_t size = 0;
  for (const std::string_view key : keys) {
    const Entry* at = find(key);
    if (at == nullptr && dialect != StoreDialect::c) return SessionFate::close;
    size += sizeof(std::uint64_t) + (at == nullptr ? 0 : at->value.size());
    if (size > limits_.unsent) return SessionFate::close;
  }
  for (const std::string_view key : keys) {
    const Entry* at = find(key);
    append_bytes(out.reply, at == nullptr ? std::string_view{} : std::string_view{at->value});
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
    const Entry* at_key = find(key);
    const std::size_t old_cost = at_key == nullptr ? 0 : cost(at_key->value);
    const std::size_t new_cost = cost_of_put(at_key, value.size());
    if (at_key == nullptr) more += key.size() + kEntryCost;
    if (new_cost > old_cost) more += new_cost - old_cost;
    // The value of a key that comes twice is news twice: as the new one, and as the old one.
    more += size_of_news(key, old_cost + value.size(), value.size());
  }
  if (!budget_.has_room(more)) return SessionFate::close;
  for (auto at = request.list.begin(); at != request.list.end();) {
    const std::string_view key = *at++;
    const std::string_view value = *at++;
    put(find(key), key, value, out);
  }
  return SessionFate::keep;
}

SessionFate KeyValueStore::add(const StoreRequest& request, StoreOutput& out) {
  Entry* const at = find(request.key);
  const auto sum = sum_at(at, request.number);
  if (!sum) return SessionFate::close;
  const Decimal decimal(*sum);
  const std::size_t value_cost = cost_of_put(at, decimal.text().size());
  if (!has_room(at, request.key, value_cost)) return SessionFate::close;
  put(at, request.key, decimal.text(), out);
  append_i64(out.reply, *sum);
  return SessionFate::keep;
}

SessionFate KeyValueStore::delete_key(std::string_view key, StoreOutput& out) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    append_i64(out.reply, 0);
    return SessionFate::keep;
  }
  const Entry& entry = *found->second;
  if (!watches_.empty()) tell_watchers(KeyEvent::deleted, key, entry.value, {}, out);
  budget_.release(key.size() + kEntryCost + cost(entry.value));
  // The last one listed takes its place.
  listed_[entry.place] = listed_.back();
  listed_[entry.place]->place = entry.place;
  listed_.pop_back();
  entries_.erase(found);
  append_i64(out.reply, 1);
  return SessionFate::keep;
}

SessionFate KeyValueStore::list_keys(StoreOutput& out) const {
  std::size_t size = sizeof(std::uint64_t);
  for (const Entry* entry : listed_) size += sizeof(std::uint64_t) + entry->key.size();
  if (size > limits_.unsent) return SessionFate::close;
  append_u64(out.reply, listed_.size());
  for (const Entry* entry : listed_) append_bytes(out.reply, entry->key);
  return SessionFate::keep;
}

// ---- waiting

SessionFate KeyValueStore::wait(const StringList& names, StoreOutput& out) {
  waits_.cancel(asker_);  // a second WAIT replaces the first
  std::vector<std::string_view> missing;
  for (const std::string_view name : names) {
    if (!exists(name)) missing.push_back(name);
  }
  if (missing.empty()) {
    append_byte(out.reply, StoreReply::stop_waiting);
    return SessionFate::keep;
  }
  if (!waits_.has_room(missing, 0)) return SessionFate::close;
  waits_.wait_for_all(asker_, missing);
  return SessionFate::keep;
}

SessionFate KeyValueStore::barrier(const StoreRequest& request, StoreOutput& out) {
  Entry* const at = find(request.key);
  const auto arrived = sum_at(at, 1);
  if (!arrived) return SessionFate::close;
  const Decimal decimal(*arrived);
  const bool full = *arrived >= request.number;
  const std::size_t waiting =
      full ? 0 : request.key.size() + StoreWaits::kNameCost + StoreWaits::kWaitCost;
  const std::size_t value_cost = cost_of_put(at, decimal.text().size());
  if (!has_room(at, request.key, value_cost, waiting)) return SessionFate::close;
  waits_.cancel(asker_);
  put(at, request.key, decimal.text(), out);
  if (full) {
    append_byte(out.reply, StoreReply::stop_waiting);
  } else {
    waits_.wait_for_number(asker_, request.key, request.number);
  }
  return SessionFate::keep;
}

SessionFate KeyValueStore::watch(std::string_view key, StoreOutput& out) {
  if (!watches_.add(asker_, key)) return SessionFate::close;
  append_byte(out.reply, StoreReply::watching);
  return SessionFate::keep;
}

// ---- queues

SessionFate KeyValueStore::push(const StoreRequest& request, StoreOutput& out) {
  if (!queues_.push(request.key, request.value)) return SessionFate::close;
  wake_one(request.key, out);
  return SessionFate::keep;
}

SessionFate KeyValueStore::pop(std::string_view name, StoreOutput& out) {
  append_u64(out.reply, queues_.size(name));
  if (const auto value = queues_.pop(name)) append_bytes(out.reply, *value);
  return SessionFate::keep;
}

}  // namespace ddp::rendezvous
