#include "agent_script.h"

#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "launcher/core/agent.h"

namespace ddp::testing {
namespace {

using namespace ddp::launcher;
using rendezvous::FailureKind;
using rendezvous::NodePhase;

// "name key=value … free text": the free text begins at the first word without '='.
struct Command {
  std::string name;
  std::string round;
  std::map<std::string, std::string> values;
  std::string text;
  std::vector<Command> parts;  // of a line with " / " in it

  [[nodiscard]] std::int32_t number(const std::string& key, std::int32_t fallback) const {
    const auto found = values.find(key);
    return found == values.end() ? fallback : std::stoi(found->second);
  }
  [[nodiscard]] bool has(const std::string& key) const { return values.count(key) != 0; }
};

Command parse_command(const std::string& line) {
  if (const auto slash = line.find(" / "); slash != std::string::npos) {
    Command command = parse_command(line.substr(0, slash));
    command.parts = {command};
    const Command rest = parse_command(command.name + " " + line.substr(slash + 3));
    command.parts.insert(command.parts.end(), rest.parts.begin(), rest.parts.end());
    if (rest.parts.empty()) command.parts.push_back(rest);
    return command;
  }
  std::istringstream words(line);
  Command command;
  words >> command.name;
  std::string word;
  while (words >> word) {
    const auto equals = word.find('=');
    if (!command.text.empty()) {
      command.text += " " + word;
    } else if (equals != std::string::npos) {
      command.values[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (word.front() == 'r' && word.size() > 1 && std::isdigit(word[1]) != 0) {
      command.round = word;
    } else {
      command.text = word;
    }
  }
  return command;
}

// "r2" is round 2; "r2b" another round with the same number.
RoundId parse_round(const std::string& text) {
  const bool other = !text.empty() && text.back() == 'b';
  return {std::stoull(text.substr(1)), other ? 0xbU : 0xaU};
}

std::string show(const RoundId& round) {
  return "r" + std::to_string(round.number) + (round.nonce == 0xb ? "b" : "");
}

Endpoint parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  return {text.substr(0, colon),
          rendezvous::Port{static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1)))}};
}

std::string show(const Endpoint& endpoint) {
  return endpoint.host + ":" + std::to_string(endpoint.port.value);
}

std::string show(FailureKind kind) {
  static const char* const kNames[] = {"worker_exited", "worker_signaled", "spawn_failed",
                                       "interrupted",   "node_lost",       "launcher_failed"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string show(NodePhase phase) {
  static const char* const kNames[] = {"idle",      "placed",   "running", "failed",
                                       "succeeded", "stopping", "stopped"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string show(const Failure& failure) {
  std::ostringstream out;
  out << show(failure.kind) << "(";
  if (failure.rank >= 0) {
    out << "rank=" << failure.rank << " local=" << failure.local_rank << " pid=" << failure.pid
        << " ";
  }
  if (failure.exit_code >= 0) {
    out << "code=" << failure.exit_code << " ";
  }
  if (failure.signal != 0) {
    out << "signal=" << failure.signal << (failure.core_dumped ? " core" : "") << " ";
  }
  out << "host=" << failure.host
      << " age=" << std::chrono::duration_cast<std::chrono::milliseconds>(failure.age).count()
      << "ms";
  if (!failure.message.empty()) {
    out << " \"" << failure.message << "\"";
  }
  out << (failure.secondary ? " secondary" : "");
  for (const std::int32_t rank : failure.tied_ranks) {
    out << " tied=" << rank;
  }
  out << ")";
  return out.str();
}

struct ShowEffect {
  std::string operator()(const ReportStatus& effect) const {
    const NodeStatus& status = effect.status;
    std::string text = "report " + show(status.phase);
    if (status.round) {
      text += " " + show(*status.round);
    }
    if (status.store) {
      text += " store=" + show(*status.store);
    }
    if (status.failure) {
      text += " failure=" + show(*status.failure);
    }
    if (status.loss) {
      text += " loss=" + show(*status.loss) + " lost=" + std::to_string(status.lost_workers);
    }
    return text + (status.verdict_acknowledged ? " acknowledged" : "");
  }
  std::string operator()(const OpenStore& effect) const {
    return "open_store " + show(effect.round);
  }
  std::string operator()(const CloseStore&) const { return "close_store"; }
  std::string operator()(const SpawnWorkers& effect) const {
    std::string text = "spawn " + show(effect.placement.round) + " ranks";
    for (const WorkerPlan& plan : effect.plan.workers) {
      text += " " + std::to_string(plan.rank.value);
    }
    const Environment& environment = effect.plan.environment;
    return text + " restart_count=" + environment.at("TORCHELASTIC_RESTART_COUNT") +
           " master=" + environment.at("MASTER_ADDR") + ":" + environment.at("MASTER_PORT");
  }
  std::string operator()(const SignalWorker& effect) const {
    return "signal local=" + std::to_string(effect.local_rank.value) + " " +
           std::to_string(effect.signal);
  }
  std::string operator()(const KillWorker& effect) const {
    return "kill local=" + std::to_string(effect.local_rank.value);
  }
  std::string operator()(const PauseWorkers&) const { return "pause"; }
  std::string operator()(const ResumeWorkers&) const { return "resume"; }
  std::string operator()(const Hurry&) const { return "hurry"; }
  std::string operator()(const StopGuardian&) const { return "stop_guardian"; }
  std::string operator()(const ContinueGuardian& effect) const {
    return effect.runs ? "guardian_runs" : "continue_guardian";
  }
  std::string operator()(const SweepRemains& effect) const {
    std::string text = "sweep " + show(effect.round);
    for (const LocalRank rank : effect.spared) {
      text += " spared=" + std::to_string(rank.value);
    }
    return text + (effect.spared.empty() ? "" : " signal=" + std::to_string(effect.signal));
  }
  std::string operator()(const KillRemains& effect) const {
    return "kill_remains " + show(effect.round);
  }
  std::string operator()(const PublishDeath& effect) const {
    return "publish " + show(effect.failure);
  }
  std::string operator()(const Say& effect) const {
    static const char* const kLevels[] = {"note", "warning", "error"};
    return std::string("say ") + kLevels[static_cast<std::size_t>(effect.level)] + ": " +
           effect.text;
  }
  std::string operator()(const ExitAgent& effect) const {
    std::string others;
    for (const EndCount& end : effect.others_failed) {
      others += " others=" + std::to_string(end.count) +
                (end.signal != 0 ? "*signal" + std::to_string(end.signal)
                                 : "*code" + std::to_string(end.exit_code));
    }
    return "exit " + std::to_string(effect.exit_code) +
           (effect.verdict ? " verdict=" + std::to_string(effect.verdict->exit_code)
                           : " no verdict") +
           " stopped=" + std::to_string(effect.workers_stopped) + others;
  }
};

class Player {
 public:
  explicit Player(const Command& settings)
      : agent_(config(settings), "alpha", rendezvous::NodeId{"00"}, {}) {}

  std::vector<std::string> play(const Command& command) {
    std::vector<std::string> lines;
    if (command.name == "time") {
      const Instant until{std::chrono::milliseconds(std::stoll(command.text))};
      // As the shell does: one timer, set to the machine's next deadline.
      while (agent_.next_deadline() && *agent_.next_deadline() <= until) {
        now_ = std::max(now_, *agent_.next_deadline());
        write(agent_.on_time(now_), lines);
      }
      now_ = until;
    } else {
      write(agent_.handle(event(command), now_), lines);
    }
    return lines;
  }

 private:
  static LaunchConfig config(const Command& settings) {
    LaunchConfig config;
    config.program = "train";
    config.workers = settings.number("workers", 2);
    config.shutdown_timeout = std::chrono::milliseconds(settings.number("grace_ms", 30000));
    if (settings.has("notify")) config.on_failure = OnFailure::notify;
    if (settings.has("listed")) config.signals_to_handle.push_back(settings.number("listed", 0));
    return config;
  }

  static AgentEvent event(const Command& c) {
    if (c.name == "store_opened") {
      return StoreOpened{parse_round(c.round), parse_endpoint(c.values.at("at"))};
    }
    if (c.name == "store_failed") {
      return StoreFailed{parse_round(c.round), c.text};
    }
    if (c.name == "spawned") {
      std::vector<std::int64_t> pids;
      std::istringstream numbers(c.text);
      for (std::int64_t pid = 0; numbers >> pid;) {
        pids.push_back(pid);
      }
      return WorkersSpawned{parse_round(c.round), pids};
    }
    if (c.name == "spawn_failed") {
      return SpawnFailed{parse_round(c.round), LocalRank{c.number("local", 0)},
                         c.number("code", 127), c.text};
    }
    if (c.name == "exited") {
      return WorkersExited{parse_round(c.round), {exit(c)}};
    }
    if (c.name == "exited_together") {  // local=0 code=3 / local=1 signal=9 / …
      WorkersExited exited{parse_round(c.round), {}};
      for (const Command& one : c.parts) {
        exited.exits.push_back(exit(one));
      }
      return exited;
    }
    if (c.name == "remains_gone") {
      return RemainsGone{parse_round(c.round)};
    }
    if (c.name == "signal") {
      return SignalReceived{std::stoi(c.text), c.number("direct", 0) == 0};
    }
    if (c.name == "guardian_lost") {
      return GuardianLost{};
    }
    if (c.name == "coordinator_silent") {
      return CoordinatorSilent{c.text};
    }
    if (c.name == "coordinator_lost") {
      return CoordinatorLost{c.number("code", 122), c.text};
    }
    return OrderReceived{order(c)};
  }

  static WorkerExit exit(const Command& c) {
    WorkerExit exit{LocalRank{c.number("local", 0)}};
    exit.exit_code = c.has("signal") ? -1 : c.number("code", 0);
    exit.signal = c.number("signal", 0);
    exit.core_dumped = c.number("core", 0) != 0;
    exit.message = c.text;
    if (c.has("lost_peer")) {
      exit.last_output =
          "RuntimeError: [./gloo/transport/tcp/pair.cc:589] Connection closed by peer "
          "[127.0.0.1]:4242\n";
    }
    if (c.has("failed_at_s")) {
      exit.failed_at = std::chrono::seconds(c.number("failed_at_s", 0));
      exit.told_at = std::chrono::seconds(c.number("told_at_s", 0));
    }
    return exit;
  }

  static Order order(const Command& c) {
    if (c.name == "wait") {
      rendezvous::Wait wait{c.text, std::nullopt};
      if (c.has("left_ms")) wait.remaining = std::chrono::milliseconds(c.number("left_ms", 0));
      wait.pausing = c.number("pausing", 0) != 0;
      return wait;
    }
    if (c.name == "run") {
      rendezvous::Run run{placement(c)};
      if (c.has("loss")) {
        Failure& loss = run.loss.emplace();
        loss.kind = FailureKind::worker_signaled;
        loss.rank = c.number("loss", 0);
        loss.host = "beta";
        loss.signal = 9;
      }
      return run;
    }
    if (c.name == "stop") {
      rendezvous::Stop stop{parse_round(c.round), c.text, std::nullopt};
      if (c.has("cause")) {
        Failure cause;
        cause.kind = c.values.at("cause") == "interrupted" ? FailureKind::interrupted
                                                           : FailureKind::worker_exited;
        cause.rank = c.number("rank", -1);
        cause.host = "beta";
        cause.exit_code = c.number("code", 1);
        cause.secondary = c.has("lost_peer");
        stop.cause = cause;
      }
      return stop;
    }
    if (c.name == "refuse") {
      return rendezvous::Refuse{c.number("code", 121), c.text};
    }
    Verdict verdict;
    verdict.exit_code = c.number("code", 0);
    verdict.reason = c.text;
    if (c.name == "close") {
      return rendezvous::Close{verdict};
    }
    if (c.name == "leave") {
      return rendezvous::Leave{verdict};
    }
    throw std::runtime_error("unknown command: " + c.name);
  }

  static Placement placement(const Command& c) {
    Placement placement;
    placement.round = parse_round(c.round);
    placement.group_rank.value = c.number("group_rank", 0);
    placement.group_world_size = c.number("nodes", 1);
    placement.first_rank.value = c.number("first", 0);
    placement.world_size = c.number("world", 2);
    placement.role_first_rank = placement.first_rank;
    placement.role_world_size = placement.world_size;
    placement.restart_count = c.number("restart", 0);
    placement.max_restarts = c.number("max", 0);
    if (c.has("master")) {
      placement.master = parse_endpoint(c.values.at("master"));
    }
    return placement;
  }

  static void write(const AgentEffects& effects, std::vector<std::string>& lines) {
    for (const AgentEffect& effect : effects) {
      lines.push_back(std::visit(ShowEffect{}, effect));
    }
  }

  Agent agent_;
  Instant now_{};
};

}  // namespace

std::string play_agent_script(const std::string& script) {
  std::istringstream lines(script);
  std::string result;
  std::optional<Player> player;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("    ", 0) == 0) {
      continue;  // an effect of an earlier run
    }
    result += line + "\n";
    if (line.rfind("agent", 0) == 0) {
      player.emplace(parse_command(line));
    } else if (line.rfind("> ", 0) == 0) {
      if (!player) {
        throw std::runtime_error("a script begins with a line `agent …`");
      }
      for (const std::string& effect : player->play(parse_command(line.substr(2)))) {
        result += "    " + effect + "\n";
      }
    } else if (!line.empty() && line.front() != '#') {
      throw std::runtime_error("not understood: " + line);
    }
  }
  return result;
}

}  // namespace ddp::testing
