#include "rendezvous/io/member_loop.h"

#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "rendezvous/core/result.h"
#include "rendezvous/io/machine_time.h"

namespace ddp::rendezvous {

MemberLoop::MemberLoop(boost::asio::io_context& context, std::string coordinator,
                       std::uint64_t seed, LinkCallbacks callbacks)
    : context_(context),
      timer_(context),
      coordinator_(std::move(coordinator)),
      seed_(seed),
      callbacks_(std::move(callbacks)) {}

void MemberLoop::start(const std::string& run_id, const NodeDescription& description) {
  DDP_ASSERT(!machine_);
  MemberSetup setup;
  setup.run_id = run_id;
  setup.node = description;
  setup.coordinator = coordinator_;
  setup.seed = seed_;
  machine_.emplace(std::move(setup));
  const Instant now = machine_now();
  carry_out(machine_->handle(StatusChanged{status_}, now));
  carry_out(machine_->on_time(now));
  arm_timer();
}

void MemberLoop::report(const NodeStatus& status) {
  if (machine_) {
    dispatch(StatusChanged{status});
  } else {
    status_ = status;
  }
}

void MemberLoop::stop() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  disconnect();
}

void MemberLoop::dispatch(const MemberEvent& event) {
  if (stopped_) return;
  carry_out(machine_->handle(event, machine_now()));
  arm_timer();
}

void MemberLoop::carry_out(MemberEffects effects) {
  for (MemberEffect& effect : effects) {
    if (const auto* wanted = std::get_if<Connect>(&effect)) {
      connect(wanted->connection);
    } else if (std::holds_alternative<Disconnect>(effect)) {
      disconnect();
    } else if (const auto* send = std::get_if<Send>(&effect)) {
      send_message(send->message);
    } else {
      tell_owner(std::move(effect));
    }
  }
}

// By way of the loop: the owner may be in the middle of a call to us.
void MemberLoop::tell_owner(MemberEffect effect) {
  boost::asio::post(context_, [self = shared_from_this(), effect = std::move(effect)] {
    const LinkCallbacks& callbacks = self->callbacks_;
    if (self->stopped_) return;
    if (const auto* deliver = std::get_if<DeliverOrder>(&effect)) {
      callbacks.on_order(deliver->order);
    } else if (const auto* give_up = std::get_if<GiveUp>(&effect)) {
      callbacks.on_lost(give_up->exit_code, give_up->reason);
    } else if (const auto* remark = std::get_if<Remark>(&effect)) {
      const auto& listener = remark->trouble ? callbacks.on_trouble : callbacks.on_note;
      if (listener) listener(remark->text);
    }
  });
}

void MemberLoop::arm_timer() {
  const auto deadline = machine_->next_deadline();
  if (!deadline || (armed_ && *armed_ <= *deadline)) return;
  armed_ = deadline;
  timer_.expires_at(on_steady_clock(*deadline));
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->stopped_) return;
    self->armed_.reset();
    self->carry_out(self->machine_->on_time(machine_now()));
    self->arm_timer();
  });
}

}  // namespace ddp::rendezvous
