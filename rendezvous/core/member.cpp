#include "rendezvous/core/member.h"

#include <algorithm>
#include <utility>

namespace ddp::rendezvous {
namespace {

constexpr Duration kFirstBackOff = std::chrono::milliseconds(100);
// Shorter than the grace that a coordinator gives after a closed connection.
constexpr Duration kLongestBackOff = std::chrono::milliseconds(500);
// A timer that fires this late means that we were not running, not that the other was silent.
constexpr Duration kPause = std::chrono::seconds(1);

std::string seconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

Member::Member(MemberSetup setup) : setup_(std::move(setup)), random_(setup_.seed) {}

MemberEffects Member::handle(const MemberEvent& event, Instant now) {
  MemberEffects effects;
  if (std::holds_alternative<Done>(state_)) return effects;
  forgive_pause(now);
  std::visit([&](const auto& happened) { on(happened, now, effects); }, event);
  give_up_if_time(now, effects);
  return effects;
}

MemberEffects Member::on_time(Instant now) {
  MemberEffects effects;
  forgive_pause(now);
  if (std::holds_alternative<NotStarted>(state_)) {
    contact_ = now;
    status_since_ = now;
    connect(now, effects);
  } else if (const auto* connecting = std::get_if<Connecting>(&state_)) {
    if (now >= connecting->give_up_at) reconnect_later("no answer to a connect", now, effects);
  } else if (const auto* greeting = std::get_if<Greeting>(&state_)) {
    if (now >= greeting->give_up_at) reconnect_later("no answer to the greeting", now, effects);
  } else if (auto* joined = std::get_if<Joined>(&state_)) {
    if (now >= joined->last_answer + terms_.timeout) {
      reconnect_later("no answer for " + seconds(terms_.timeout), now, effects);
    } else if (now >= joined->next_heartbeat) {
      send_status(*joined, now, effects);
    }
  } else if (const auto* pausing = std::get_if<Pausing>(&state_)) {
    if (now >= pausing->until) connect(now, effects);
  }
  give_up_if_time(now, effects);
  return effects;
}

std::optional<Instant> Member::next_deadline() const {
  if (std::holds_alternative<NotStarted>(state_) || std::holds_alternative<Done>(state_)) {
    return std::nullopt;
  }
  if (const auto* joined = std::get_if<Joined>(&state_)) {
    return std::min(joined->next_heartbeat, joined->last_answer + terms_.timeout);
  }
  Instant earliest = Instant::max();
  if (const auto* connecting = std::get_if<Connecting>(&state_)) earliest = connecting->give_up_at;
  if (const auto* greeting = std::get_if<Greeting>(&state_)) earliest = greeting->give_up_at;
  if (const auto* pausing = std::get_if<Pausing>(&state_)) earliest = pausing->until;
  return verdict_ ? earliest : std::min(earliest, patience_ends());
}

// ---- what happened ---------------------------------------------------------------------------

void Member::on(const StatusChanged& event, Instant now, MemberEffects& effects) {
  status_ = event.status;
  status_since_ = now;
  if (auto* joined = std::get_if<Joined>(&state_)) send_status(*joined, now, effects);
}

void Member::on(const Connected& event, Instant now, MemberEffects& effects) {
  const auto* connecting = std::get_if<Connecting>(&state_);
  if (connecting == nullptr || connecting->connection != event.connection) return;
  state_ = Greeting{event.connection, now + terms_.timeout};
  Hello hello;
  hello.job = setup_.run_id;
  hello.node = setup_.node;
  hello.nonce = setup_.nonce;
  effects.emplace_back(Send{event.connection, std::move(hello)});
}

void Member::on(const ConnectionFailed& event, Instant now, MemberEffects& effects) {
  if (connection() == event.connection) reconnect_later(event.reason, now, effects);
}

void Member::on(const MessageArrived& event, Instant now, MemberEffects& effects) {
  if (connection() != event.connection) return;
  std::visit([&](const auto& message) { on_message(message, now, effects); }, event.message);
}

void Member::on_message(const Welcome& welcome, Instant now, MemberEffects& effects) {
  const auto* greeting = std::get_if<Greeting>(&state_);
  if (greeting == nullptr) return;
  // A coordinator can't make us spin or wait for ever.
  terms_ = welcome;
  terms_.heartbeat = std::max<Duration>(terms_.heartbeat, std::chrono::milliseconds(10));
  terms_.timeout = std::max(terms_.timeout, 2 * terms_.heartbeat);
  was_welcome_ = true;
  contact_ = now;
  back_off_ = {};
  last_problem_.clear();
  Joined joined{greeting->connection, now, now};
  send_status(joined, now, effects);
  state_ = joined;
  effects.emplace_back(Remark{"joined job '" + setup_.run_id + "' at " + setup_.coordinator});
}

void Member::on_message(const OrderMessage& message, Instant now, MemberEffects& effects) {
  auto* joined = std::get_if<Joined>(&state_);
  if (joined == nullptr) return;
  joined->last_answer = now;
  contact_ = now;
  if (const auto* close = std::get_if<Close>(&message.order); close != nullptr && !verdict_) {
    verdict_ = close->verdict;
  }
  effects.emplace_back(DeliverOrder{message.order});
  const bool last =
      std::holds_alternative<Leave>(message.order) || std::holds_alternative<Refuse>(message.order);
  if (last) finish(effects);
}

void Member::on_message(const RefuseMessage& message, Instant, MemberEffects& effects) {
  effects.emplace_back(DeliverOrder{Refuse{message.exit_code, message.reason}});
  finish(effects);
}

// ---- what to do ------------------------------------------------------------------------------

void Member::connect(Instant now, MemberEffects& effects) {
  const ConnectionId next{++connections_};
  state_ = Connecting{next, now + setup_.connect_timeout};
  effects.emplace_back(Connect{next});
}

void Member::reconnect_later(const std::string& why, Instant now, MemberEffects& effects) {
  if (const auto current = connection()) effects.emplace_back(Disconnect{*current});
  if (why != last_problem_) {
    effects.emplace_back(Remark{
        "no connection to the coordinator at " + setup_.coordinator + ": " + why + "; trying again",
        true});
  }
  last_problem_ = why;
  back_off_ = std::clamp(2 * back_off_, kFirstBackOff, kLongestBackOff);
  const auto half = static_cast<std::uint64_t>((back_off_ / 2).count());
  const Duration jitter(static_cast<Duration::rep>(random_.below(half)));
  state_ = Pausing{now + back_off_ / 2 + jitter};
}

void Member::send_status(Joined& joined, Instant now, MemberEffects& effects) {
  StatusMessage message{++sequence_, status_};
  if (message.status.failure) message.status.failure->age += now - status_since_;
  if (message.status.loss) message.status.loss->age += now - status_since_;
  effects.emplace_back(Send{joined.connection, std::move(message)});
  joined.next_heartbeat = now + terms_.heartbeat;
}

void Member::give_up_if_time(Instant now, MemberEffects& effects) {
  const bool in_contact =
      std::holds_alternative<Joined>(state_) || std::holds_alternative<Done>(state_);
  if (!contact_ || in_contact || now < patience_ends()) return;
  if (verdict_) {
    if (!status_.verdict_acknowledged) return;
    effects.emplace_back(DeliverOrder{Leave{*verdict_}});
  } else {
    const Duration waited =
        was_welcome_ && terms_.embedded ? setup_.embedded_timeout : setup_.coordinator_timeout;
    effects.emplace_back(
        GiveUp{exit_code::kCoordinatorLost,
               (was_welcome_ ? "lost the coordinator at " : "cannot reach a coordinator at ") +
                   setup_.coordinator + " for " + seconds(waited) +
                   (last_problem_.empty() ? "" : " (" + last_problem_ + ")") +
                   (was_welcome_ ? "; is the ddplaunch that runs it still alive?"
                                 : "; is ddplaunch running there, and is this its address?")});
  }
  finish(effects);
}

void Member::finish(MemberEffects& effects) {
  if (const auto current = connection()) effects.emplace_back(Disconnect{*current});
  state_ = Done{};
}

void Member::forgive_pause(Instant now) {
  const auto deadline = next_deadline();
  if (!deadline || now < *deadline + kPause) return;
  // What was sent to us meanwhile is read after this: it has that much time to be noticed.
  const Duration pause = now - *deadline + kPause;
  if (contact_) *contact_ += pause;
  if (auto* joined = std::get_if<Joined>(&state_)) joined->last_answer += pause;
  if (auto* connecting = std::get_if<Connecting>(&state_)) connecting->give_up_at += pause;
  if (auto* greeting = std::get_if<Greeting>(&state_)) greeting->give_up_at += pause;
}

std::optional<ConnectionId> Member::connection() const {
  if (const auto* connecting = std::get_if<Connecting>(&state_)) return connecting->connection;
  if (const auto* greeting = std::get_if<Greeting>(&state_)) return greeting->connection;
  if (const auto* joined = std::get_if<Joined>(&state_)) return joined->connection;
  return std::nullopt;
}

Instant Member::patience_ends() const {
  const bool embedded = was_welcome_ && terms_.embedded;
  return *contact_ + (embedded ? setup_.embedded_timeout : setup_.coordinator_timeout);
}

}  // namespace ddp::rendezvous
