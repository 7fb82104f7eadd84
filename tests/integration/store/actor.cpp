#include "tests/integration/store/actor.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace ddp::store_test {
namespace {

using rendezvous::StoreCode;
using rendezvous::StoreDialect;
using rendezvous::StoreRequest;

// So many operations on one set of names, so that each history stays short.
constexpr std::int64_t kOperationsPerScene = 400;
constexpr std::int64_t kNamesPerScene = 5;

Time now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace

Actor::Actor(Stage& stage, StoreDialect dialect, std::uint64_t seed, int number)
    : stage_(stage),
      dialect_(dialect),
      random_(seed * 1000 + static_cast<std::uint64_t>(number)),
      unique_(number * 1'000'000'000LL) {}

void Actor::play() {
  while (true) {
    const std::int64_t turn = stage_.begun.fetch_add(1);
    if (turn >= stage_.operations) return;
    // Legacy clients have no queues, and the oldest no requests with several keys.
    const int lacks = dialect_ == StoreDialect::c ? 0 : dialect_ == StoreDialect::b ? 1 : 2;
    name_ = turn / kOperationsPerScene * kNamesPerScene + dice(kNamesPerScene - lacks);
    if (!connection_) connect();
    act();
  }
}

void Actor::connect() {
  connection_ = std::make_unique<RawConnection>(stage_.port);
  if (dialect_ == StoreDialect::c) connection_->send(step({.code = StoreCode::validate}, {}).bytes);
  // Shows that it is no A.
  if (dialect_ == StoreDialect::b) {
    connection_->send(step({.code = StoreCode::cancel_wait}, {}).bytes);
    if (!connection_->receive(1)) throw std::runtime_error("a client of dialect B was refused");
  }
}

void Actor::act() {
  const int what = dice(100);
  if (what < 12) return wait();
  if (what < 18 && dialect_ == StoreDialect::c && !is_queue() && !is_pair()) return barrier();
  std::vector<Step> steps;
  if (what < 45) {
    steps.push_back(write());
    if (dice(4) == 0) steps.push_back(write());
    // A write has no answer: what is asked behind it says that it has been done.
    steps.push_back(dice(2) == 0 ? look() : change());
  } else {
    steps.push_back(what < 70 ? change() : look());
  }
  if (dice(30) == 0) return leave_within(std::move(steps));
  perform(std::move(steps));
}

// ---- requests

Actor::Step Actor::step(StoreRequest request, Operation operation) const {
  Step step{std::move(operation), ""};
  step.operation.legacy = legacy();
  rendezvous::encode_request(step.bytes, dialect_, request);
  return step;
}

Actor::Step Actor::write() {
  const std::string key = name();
  const std::string value = some_value();
  if (is_queue()) {
    return step({.code = StoreCode::queue_push, .key = key, .value = value},
                {.kind = Kind::push, .argument = value});
  }
  if (is_pair()) {
    std::string raw;
    for (const char* half : {"/1", "/2"}) {
      rendezvous::append_bytes(raw, key + half);
      rendezvous::append_bytes(raw, value);
    }
    return step({.code = StoreCode::multi_set, .list = {raw, 4}},
                {.kind = Kind::set, .argument = value});
  }
  if (dialect_ == StoreDialect::a || dice(5) > 0) {
    return step({.code = StoreCode::set, .key = key, .value = value},
                {.kind = Kind::set, .argument = value});
  }
  const std::string digit(1, static_cast<char>('0' + dice(10)));
  return step({.code = StoreCode::append, .key = key, .value = digit},
              {.kind = Kind::append, .argument = digit});
}

Actor::Step Actor::change() {
  const std::string key = name();
  if (is_queue()) return step({.code = StoreCode::queue_pop, .key = key}, {.kind = Kind::pop});
  if (is_pair()) return look();
  const int what = dice(7);
  if (what < 2) {
    const std::int64_t difference = dice(7) - 3;
    return step({.code = StoreCode::add, .key = key, .number = difference},
                {.kind = Kind::add, .number = difference});
  }
  if (what < 5) {
    const std::string expected = dice(4) == 0 ? "" : known_;
    const std::string desired = some_value();
    return step({.code = StoreCode::compare_set, .key = key, .value = expected, .desired = desired},
                {.kind = Kind::compare_set, .argument = expected, .desired = desired});
  }
  return step({.code = StoreCode::delete_key, .key = key}, {.kind = Kind::remove});
}

Actor::Step Actor::look() {
  const std::string key = name();
  if (dice(3) == 0) {
    const std::string raw = keys();
    return step({.code = StoreCode::check, .list = {raw, number_of_keys()}}, {.kind = Kind::check});
  }
  if (is_queue()) return step({.code = StoreCode::queue_len, .key = key}, {.kind = Kind::length});
  if (is_pair()) {
    const std::string raw = keys();
    return step({.code = StoreCode::multi_get, .list = {raw, 2}}, {.kind = Kind::get});
  }
  return step({.code = StoreCode::get, .key = key}, {.kind = Kind::get});
}

std::string Actor::some_value() {
  const int what = dice(20);
  if (what == 0) return "";
  if (what == 1) return "text" + std::to_string(++unique_);
  return std::to_string(what < 8 ? dice(5) : ++unique_);
}

bool Actor::is_queue() const {
  return name_ % kNamesPerScene == kNamesPerScene - 1;
}

bool Actor::is_pair() const {
  return name_ % kNamesPerScene == kNamesPerScene - 2;
}

std::string Actor::name() const {
  return "/name/" + std::to_string(name_);
}

std::string Actor::keys() const {
  std::string raw;
  if (!is_pair()) {
    rendezvous::append_bytes(raw, name());
    return raw;
  }
  rendezvous::append_bytes(raw, name() + "/1");
  rendezvous::append_bytes(raw, name() + "/2");
  return raw;
}

// ---- asking

void Actor::perform(std::vector<Step> steps) {
  std::string bytes;
  for (const Step& step : steps) bytes += step.bytes;
  const Time invoked = now();
  // In two pieces now and then.
  const std::size_t first = dice(8) == 0 ? random_() % bytes.size() : bytes.size();
  connection_->send(std::string_view(bytes).substr(0, first));
  connection_->send(std::string_view(bytes).substr(first));
  bool open = true;
  Operation& last = steps.back().operation;
  open = read_reply(last);
  for (Step& step : steps) {
    step.operation.invoked = invoked;
    step.operation.returned = now();
    step.operation.outcome = Outcome::answered;
  }
  if (!open) {
    last.outcome = Outcome::closed;
    ++counts_.closed;
    end_of_connection();
  }
  for (Step& step : steps) note(std::move(step.operation));
}

// Only the last of several has a reply.
bool Actor::read_reply(Operation& operation) {
  std::optional<std::int64_t> number = 0;
  std::optional<std::string> bytes = "";
  switch (operation.kind) {
    case Kind::get:
    case Kind::compare_set:
      bytes = connection_->receive_bytes();
      if (bytes && is_pair()) {
        const auto second = connection_->receive_bytes();
        if (!second) return false;
        // Nobody has written this: no order explains it.
        if (*second != *bytes) *bytes += " beside " + *second;
      }
      break;
    case Kind::check:
      bytes = connection_->receive(1);
      if (!bytes) return false;
      operation.count = bytes->front();
      return true;
    case Kind::pop:
      number = connection_->receive_number();
      if (number && *number > 0) bytes = connection_->receive_bytes();
      break;
    default:
      number = connection_->receive_number();
      break;
  }
  if (!number || !bytes) return false;
  operation.count = *number;
  operation.value = *bytes;
  if (operation.kind == Kind::get || operation.kind == Kind::compare_set) known_ = *bytes;
  if (operation.kind == Kind::add) known_ = std::to_string(*number);
  return true;
}

void Actor::leave_within(std::vector<Step> steps) {
  std::string bytes;
  for (const Step& step : steps) bytes += step.bytes;
  // Any byte, the last included; half of them behind it, before the answer is read.
  const std::size_t length = dice(2) == 0 ? random_() % bytes.size() : bytes.size();
  const Time invoked = now();
  connection_->send(std::string_view(bytes).substr(0, length));
  if (dice(2) == 0) connection_->cut();
  end_of_connection();
  ++(length < bytes.size() ? counts_.half_sent : counts_.unanswered);
  std::size_t end = 0;
  for (Step& step : steps) {
    end += step.bytes.size();
    if (end > length) return;  // what was not sent whole never happens
    step.operation.invoked = invoked;
    note(std::move(step.operation));
  }
}

void Actor::wait() {
  const std::string raw = keys();
  const StoreRequest request{.code = StoreCode::wait, .list = {raw, number_of_keys()}};
  Operation ended = step(request, {.kind = Kind::wait}).operation;
  ended.invoked = now();
  Operation cancelled = ended;
  cancelled.kind = Kind::wait_cancelled;
  connection_->send(step(request, {}).bytes);
  settle_wait(std::move(ended), std::move(cancelled));
}

void Actor::barrier() {
  const std::string key = name();
  const std::int64_t enough = 1 + dice(6);
  const Step arriving = step({.code = StoreCode::barrier, .key = key, .number = enough},
                             {.kind = Kind::arrive, .number = enough});
  Operation arrived = arriving.operation;
  arrived.invoked = now();
  Operation passed = arrived;
  passed.kind = Kind::pass;
  Operation not_passed = arrived;
  not_passed.kind = Kind::not_passed;
  connection_->send(arriving.bytes);
  const std::size_t before = record_.size();
  settle_wait(std::move(passed), std::move(not_passed));
  arrived.outcome = Outcome::unknown;
  if (record_.size() > before) {
    const Operation& end = record_.back().operation;
    arrived.returned = end.returned;
    arrived.outcome = end.outcome;
    if (end.outcome == Outcome::closed) record_.pop_back();
  }
  note(std::move(arrived));
}

// Waits a little, then gives up; notes what came of it, or nothing if that can't be known.
void Actor::settle_wait(Operation ended, Operation cancelled) {
  const auto finish = [this](Operation operation, Outcome outcome) {
    operation.returned = now();
    operation.outcome = outcome;
    note(std::move(operation));
    if (outcome != Outcome::closed) return;
    ++counts_.closed;
    end_of_connection();
  };
  const bool in_time = connection_->readable_within(std::chrono::microseconds(dice(2000)));
  if (!in_time && (dialect_ == StoreDialect::a || dice(20) == 0)) {
    ++counts_.unanswered;
    return end_of_connection();
  }
  // Still pending when it is cancelled: so it must be right to be pending then.
  cancelled.invoked = now();
  if (!in_time) connection_->send(step({.code = StoreCode::cancel_wait}, {}).bytes);
  const auto first = connection_->receive(1);
  if (!first) return finish(std::move(ended), Outcome::closed);
  if ((*first)[0] == 1) return finish(std::move(cancelled), Outcome::answered);
  finish(std::move(ended), Outcome::answered);
  // The answer and the cancellation have met.
  if (!in_time && !connection_->receive(1)) end_of_connection();
}

void Actor::end_of_connection() {
  connection_.reset();
}

void Actor::note(Operation operation) {
  record_.push_back({name_, std::move(operation)});
}

}  // namespace ddp::store_test
