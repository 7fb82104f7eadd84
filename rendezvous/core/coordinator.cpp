#include "rendezvous/core/coordinator.h"

#include <algorithm>
#include <utility>

namespace ddp::rendezvous {
namespace {

// Strangers may knock with ever new reasons to be refused.
constexpr std::size_t kMostRefusalsSaid = 16;

std::string versions(std::int32_t min, std::int32_t max) {
  return min == max ? std::to_string(min) : std::to_string(min) + " to " + std::to_string(max);
}

// Time that passes is no change.
bool same_order(const Order& a, const Order& b) {
  const Wait* wait_a = std::get_if<Wait>(&a);
  const Wait* wait_b = std::get_if<Wait>(&b);
  if (wait_a != nullptr && wait_b != nullptr) return wait_a->reason == wait_b->reason;
  return a == b;
}

}  // namespace

Coordinator::Coordinator(CoordinatorSetup setup) : setup_(std::move(setup)), random_(setup_.seed) {}

CoordinatorEffects Coordinator::handle(const CoordinatorEvent& event, Instant now) {
  CoordinatorEffects effects;
  std::visit([&](const auto& happened) { on(happened, now, effects); }, event);
  forget_jobs(now);
  return effects;
}

CoordinatorEffects Coordinator::on_time(Instant now) {
  CoordinatorEffects effects;
  std::vector<SessionId> mute;
  for (const auto& [id, session] : sessions_) {
    if (!session.node && now >= session.opened + setup_.hello_timeout) mute.push_back(id);
  }
  for (const SessionId id : mute) close(id, effects);
  for (auto& [run_id, entry] : jobs_) {
    const auto deadline = entry.job.next_deadline();
    if (deadline && now >= *deadline) obey(entry, entry.job.on_time(now), now, effects);
  }
  forget_jobs(now);
  return effects;
}

void Coordinator::forget_jobs(Instant now) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const JobEntry& entry = at->second;
    const bool over = entry.closed_at && now >= *entry.closed_at + setup_.remembered;
    const bool forget = entry.sessions.empty() && (over || entry.job.vacant());
    at = forget ? jobs_.erase(at) : std::next(at);
  }
}

std::optional<Instant> Coordinator::next_deadline() const {
  std::optional<Instant> earliest;
  const auto consider = [&earliest](std::optional<Instant> at) {
    if (at) earliest = earliest ? std::min(*earliest, *at) : *at;
  };
  for (const auto& [id, session] : sessions_) {
    if (!session.node) consider(session.opened + setup_.hello_timeout);
  }
  for (const auto& [run_id, entry] : jobs_) {
    consider(entry.job.next_deadline());
    if (entry.closed_at && entry.sessions.empty()) consider(*entry.closed_at + setup_.remembered);
  }
  return earliest;
}

// ---- what happened ---------------------------------------------------------------------------

void Coordinator::on(const SessionOpened& event, Instant now, CoordinatorEffects&) {
  Session& session = sessions_[event.session];
  session.address = event.address;
  session.local = event.local;
  session.opened = now;
}

void Coordinator::on(const SessionClosed& event, Instant now, CoordinatorEffects& effects) {
  const auto found = sessions_.find(event.session);
  if (found == sessions_.end()) return;
  const Session session = std::move(found->second);
  sessions_.erase(found);
  if (!session.node) return;
  JobEntry& entry = jobs_.at(session.run_id);
  entry.sessions.erase(*session.node);
  obey(entry, entry.job.handle(NodeDisconnected{*session.node}, now), now, effects);
}

void Coordinator::on(const MessageReceived& event, Instant now, CoordinatorEffects& effects) {
  const auto found = sessions_.find(event.session);
  if (found == sessions_.end()) return;
  const bool greeted = found->second.node.has_value();
  if (const auto* hello = std::get_if<Hello>(&event.message)) {
    if (greeted) return close(event.session, effects);
    on_hello(event.session, *hello, now, effects);
  } else if (const auto* status = std::get_if<StatusMessage>(&event.message)) {
    if (!greeted) return close(event.session, effects);
    on_status(event.session, *status, now, effects);
  }
}

void Coordinator::on_hello(SessionId id, Hello hello, Instant now, CoordinatorEffects& effects) {
  if (auto objection = objection_to(hello)) {
    return refuse(id, Refuse{exit_code::kRefused, std::move(*objection)}, effects);
  }
  Session& session = sessions_.at(id);
  if (!session.local && is_local(hello)) {
    return refuse(id,
                  Refuse{exit_code::kRefused, "host " + hello.node.host +
                                                  " calls itself the node that runs this "
                                                  "coordinator; it must have an id of its own"},
                  effects);
  }
  if (setup_.embedded && session.local) setup_.only_job = hello.job;
  if (hello.node.address.empty()) hello.node.address = session.address;
  JobEntry& entry = entry_for(hello, now);
  JobEffects wanted = entry.job.handle(NodeJoined{hello.node, session.local}, now);
  const auto refused =
      std::find_if(wanted.begin(), wanted.end(), [&hello](const JobEffect& effect) {
        const auto* refusal = std::get_if<RefuseNode>(&effect);
        return refusal != nullptr && refusal->node == hello.node.id;
      });
  if (refused != wanted.end()) {
    refuse(id, std::get<RefuseNode>(*refused).refuse, effects);
    wanted.erase(refused);  // this session is meant, not that of a member with the same id
    return obey(entry, wanted, now, effects);
  }
  detach(entry, hello.node.id, effects);
  session.run_id = hello.job;
  session.node = hello.node.id;
  entry.sessions[hello.node.id] = id;
  entry.sequences.erase(hello.node.id);
  effects.emplace_back(
      SendMessage{id, Welcome{std::min(kMaxProtocolVersion, hello.max_version), setup_.embedded,
                              setup_.heartbeat, setup_.times.silence}});
  obey(entry, wanted, now, effects);
}

std::optional<std::string> Coordinator::objection_to(const Hello& hello) const {
  const NodeDescription& node = hello.node;
  if (hello.max_version < kMinProtocolVersion || hello.min_version > kMaxProtocolVersion) {
    return "host " + node.host + " speaks version " +
           versions(hello.min_version, hello.max_version) +
           " of the agent protocol, this coordinator " +
           versions(kMinProtocolVersion, kMaxProtocolVersion) +
           "; install the same ddplaunch on every node";
  }
  if (setup_.only_job && hello.job != *setup_.only_job) {
    return "this coordinator serves job '" + *setup_.only_job + "', host " + node.host +
           " wants to join job '" + hello.job +
           "'; use the same --rdzv-id on every node, or another port for another job";
  }
  const NodeLimits limits = node.limits;
  if (limits.min < 1 || limits.max < limits.min || limits.max > kMaxNodes) {
    return "host " + node.host + " says --nnodes " + std::to_string(limits.min) + ":" +
           std::to_string(limits.max) + ", which is not within 1 to " + std::to_string(kMaxNodes);
  }
  if (node.workers < 1 || node.workers > kMaxWorkers) {
    return "host " + node.host + " says --nproc-per-node " + std::to_string(node.workers) +
           ", which is not within 1 to " + std::to_string(kMaxWorkers);
  }
  return std::nullopt;
}

bool Coordinator::is_local(const Hello& hello) const {
  const auto job = jobs_.find(hello.job);
  if (job == jobs_.end()) return false;
  const auto session = job->second.sessions.find(hello.node.id);
  return session != job->second.sessions.end() && sessions_.at(session->second).local;
}

Coordinator::JobEntry& Coordinator::entry_for(const Hello& hello, Instant now) {
  const auto found = jobs_.find(hello.job);
  if (found != jobs_.end()) return found->second;
  const JobTerms terms{hello.node.limits, hello.node.max_restarts, hello.node.restart_delay,
                       hello.node.notify};
  JobEntry entry{Job(hello.job, terms, setup_.times, random_.next(), now), {}, {}, {}, {}};
  return jobs_.emplace(hello.job, std::move(entry)).first->second;
}

void Coordinator::on_status(SessionId id, const StatusMessage& message, Instant now,
                            CoordinatorEffects& effects) {
  const Session& session = sessions_.at(id);
  JobEntry& entry = jobs_.at(session.run_id);
  const NodeId node = *session.node;
  std::int64_t& newest = entry.sequences[node];
  if (message.sequence <= newest) {
    return send_order(entry, id, entry.job.order_for(node, now), effects);
  }
  newest = message.sequence;
  const std::size_t already = effects.size();
  obey(entry, entry.job.handle(NodeReported{node, message.status}, now), now, effects);
  const bool answered = std::any_of(effects.begin() + static_cast<std::ptrdiff_t>(already),
                                    effects.end(), [id](const CoordinatorEffect& effect) {
                                      const auto* sent = std::get_if<SendMessage>(&effect);
                                      return sent != nullptr && sent->session == id;
                                    });
  if (!answered && sessions_.count(id) != 0) {
    send_order(entry, id, entry.job.order_for(node, now), effects);
  }
}

// ---- what the job wants ----------------------------------------------------------------------

void Coordinator::obey(JobEntry& entry, const JobEffects& wanted, Instant now,
                       CoordinatorEffects& effects) {
  bool orders_changed = false;
  for (const JobEffect& effect : wanted) {
    if (std::holds_alternative<OrdersChanged>(effect)) {
      orders_changed = true;
    } else if (const auto* refused = std::get_if<RefuseNode>(&effect)) {
      const auto session = entry.sessions.find(refused->node);
      if (session != entry.sessions.end()) refuse(session->second, refused->refuse, effects);
    } else if (const auto* dropped = std::get_if<DropNode>(&effect)) {
      detach(entry, dropped->node, effects);
    } else if (const auto* decided = std::get_if<JobDecided>(&effect)) {
      entry.closed_at = now;
      effects.emplace_back(JobClosed{entry.job.run_id(), decided->verdict});
    }
  }
  if (orders_changed) send_changed_orders(entry, now, effects);
}

void Coordinator::send_changed_orders(JobEntry& entry, Instant now, CoordinatorEffects& effects) {
  for (const auto& [node, id] : entry.sessions) {
    Order order = entry.job.order_for(node, now);
    const std::optional<Order>& last = sessions_.at(id).last_order;
    if (!last || !same_order(*last, order)) send_order(entry, id, std::move(order), effects);
  }
  std::string line = entry.job.state_line();
  if (line != entry.state_line) {
    entry.state_line = line;
    effects.emplace_back(JobStateChanged{entry.job.run_id(), std::move(line)});
  }
}

void Coordinator::send_order(JobEntry& entry, SessionId id, Order order,
                             CoordinatorEffects& effects) {
  Session& session = sessions_.at(id);
  session.last_order = order;
  effects.emplace_back(
      SendMessage{id, OrderMessage{entry.sequences[*session.node], std::move(order)}});
}

void Coordinator::refuse(SessionId id, Refuse refuse, CoordinatorEffects& effects) {
  const bool news = refusals_.size() < kMostRefusalsSaid && refusals_.insert(refuse.reason).second;
  if (news && refuse.exit_code == exit_code::kRefused) {
    effects.emplace_back(NodeRefused{refuse.reason});
  }
  effects.emplace_back(SendMessage{id, RefuseMessage{refuse.exit_code, std::move(refuse.reason)}});
  close(id, effects);
}

void Coordinator::close(SessionId id, CoordinatorEffects& effects) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const Session session = std::move(found->second);
  sessions_.erase(found);
  effects.emplace_back(CloseSession{id});
  if (session.node) jobs_.at(session.run_id).sessions.erase(*session.node);
}

void Coordinator::detach(JobEntry& entry, const NodeId& node, CoordinatorEffects& effects) {
  const auto attached = entry.sessions.find(node);
  if (attached != entry.sessions.end()) close(attached->second, effects);
}

}  // namespace ddp::rendezvous
