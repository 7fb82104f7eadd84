#include "rendezvous/io/coordinator_loop.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "rendezvous/io/machine_time.h"

namespace ddp::rendezvous {
namespace {

// Agents that were told to leave do so at once; longer than this only the unreachable take.
constexpr Duration kFinishTimeout = std::chrono::seconds(10);

}  // namespace

CoordinatorLoop::CoordinatorLoop(boost::asio::io_context& context, CoordinatorSetup setup,
                                 Note on_note, Note on_refused)
    : context_(context),
      machine_(std::move(setup)),
      timer_(context),
      finish_timer_(context),
      on_note_(std::move(on_note)),
      on_refused_(std::move(on_refused)) {}

SessionId CoordinatorLoop::open(std::shared_ptr<CoordinatorClient> client,
                                const std::string& address, bool local) {
  const SessionId id{++sessions_};
  if (stopped_) return id;
  clients_.emplace(id, Client{std::move(client), local});
  dispatch(SessionOpened{id, address, local});
  return id;
}

void CoordinatorLoop::receive(SessionId session, Message message) {
  if (!stopped_) dispatch(MessageReceived{session, std::move(message)});
}

void CoordinatorLoop::close(SessionId session) {
  if (stopped_ || clients_.erase(session) == 0) return;
  dispatch(SessionClosed{session});
  finish_if_alone();
}

void CoordinatorLoop::dispatch(const CoordinatorEvent& event) {
  carry_out(machine_.handle(event, machine_now()));
  arm_timer();
}

void CoordinatorLoop::carry_out(const CoordinatorEffects& effects) {
  for (const CoordinatorEffect& effect : effects) {
    if (const auto* send = std::get_if<SendMessage>(&effect)) {
      const auto client = clients_.find(send->session);
      if (client != clients_.end()) client->second.way->send_to_agent(send->message);
    } else if (const auto* close = std::get_if<CloseSession>(&effect)) {
      const auto client = clients_.find(close->session);
      if (client != clients_.end()) client->second.way->close_agent();
    } else if (const auto* refused = std::get_if<NodeRefused>(&effect)) {
      if (on_refused_) on_refused_(refused->reason);
    } else if (const auto* state = std::get_if<JobStateChanged>(&effect)) {
      if (on_note_) on_note_("job '" + state->run_id + "': " + state->line);
    }
  }
}

// A timer that fires early does no harm, so it is only ever moved forward.
void CoordinatorLoop::arm_timer() {
  const auto deadline = machine_.next_deadline();
  if (!deadline || (armed_ && *armed_ <= *deadline)) return;
  armed_ = deadline;
  timer_.expires_at(on_steady_clock(*deadline));
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->stopped_) return;
    self->armed_.reset();
    self->carry_out(self->machine_.on_time(machine_now()));
    self->arm_timer();
  });
}

bool CoordinatorLoop::others_connected() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& entry) { return !entry.second.local; });
}

void CoordinatorLoop::finish(std::function<void()> on_all_gone) {
  on_all_gone_ = std::move(on_all_gone);
  finish_timer_.expires_after(kFinishTimeout);
  finish_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->on_all_gone_) std::exchange(self->on_all_gone_, nullptr)();
  });
  finish_if_alone();
}

void CoordinatorLoop::finish_if_alone() {
  if (!on_all_gone_ || others_connected()) return;
  finish_timer_.cancel();
  boost::asio::post(context_, std::exchange(on_all_gone_, nullptr));
}

void CoordinatorLoop::stop() {
  stopped_ = true;
  timer_.cancel();
  finish_timer_.cancel();
  on_all_gone_ = nullptr;
  on_note_ = nullptr;
  on_refused_ = nullptr;
  const auto clients = std::exchange(clients_, {});
  for (const auto& [id, client] : clients) client.way->close_agent();
}

}  // namespace ddp::rendezvous
