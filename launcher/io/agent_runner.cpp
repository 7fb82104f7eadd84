#include "launcher/io/agent_runner.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "launcher/core/verdict.h"
#include "launcher/core/verdict_json.h"
#include "launcher/core/worker_plan.h"
#include "launcher/io/host_probe.h"
#include "launcher/io/program_search.h"
#include "launcher/io/report_file.h"
#include "rendezvous/io/machine_time.h"

namespace ddp::launcher {

using rendezvous::machine_now;

namespace {

// Enough for pidfds and connections of any job; the table grows only as it is used.
constexpr rlim_t kWantedFiles = 1 << 20;

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return bits;
}

rendezvous::NodeId new_node_id() {
  std::string id;
  for (int half = 0; half < 2; ++half) {
    for (std::uint64_t bits = random_bits(), digit = 0; digit < 16; ++digit, bits >>= 4) {
      id += "0123456789abcdef"[bits & 15];
    }
  }
  return {id};
}

StreamFacts look_at_stream(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return {};
  return {S_ISCHR(info.st_mode) && ::isatty(descriptor) == 1,
          S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode), info.st_dev, info.st_ino};
}

std::optional<rlimit> raise_limit_of_files() {
  rlimit original{};
  if (::getrlimit(RLIMIT_NOFILE, &original) != 0) return std::nullopt;
  rlimit raised = original;
  raised.rlim_cur = std::max(original.rlim_cur, std::min(original.rlim_max, kWantedFiles));
  if (raised.rlim_cur == original.rlim_cur || ::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return std::nullopt;
  }
  return original;
}

// The Python that runs the workers, empty if none does.
std::string interpreter_of(const LaunchConfig& config, const Environment& environment) {
  const std::string name =
      config.kind == ProgramKind::executable ? config.program : python_of(environment);
  if (name.substr(name.rfind('/') + 1).compare(0, 6, "python") != 0) return {};
  const auto found = find_program(name, environment);
  return found.empty() ? name : found.front();
}

// One that knows no way to erase a line says so.
bool is_plain_terminal(const Environment& environment) {
  const auto kind = environment.find("TERM");
  return kind == environment.end() || kind->second.empty() || kind->second == "dumb";
}

// On a busy disk the folders of hundreds of ranks would take longer than starting them, so memory
// comes first unless the user has named a place.
std::vector<std::string> places_for_files(const Environment& environment) {
  const auto variable = environment.find("TMPDIR");
  if (variable != environment.end() && !variable->second.empty()) return {variable->second};
  return {"/dev/shm", "/tmp"};
}

// While there are no threads. Throws std::runtime_error, fit for people.
std::unique_ptr<PidNamespace> make_namespace(const LaunchConfig& config) {
  if (!config.isolate_pids) return nullptr;
  auto made = PidNamespace::make();
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(made).value();
}

}  // namespace

AgentRunner::AgentRunner(LaunchConfig config, const Environment& environment, Guarded guarded,
                         std::optional<UniqueFd> event_file)
    : config_(std::move(config)),
      environment_(environment),
      streams_(plan_streams(look_at_stream(STDOUT_FILENO), look_at_stream(STDERR_FILENO))),
      host_name_(host_name()),
      node_(new_node_id()),
      console_(context_, streams_.out == StreamRoute::terminal && !streams_.joined),
      guardian_(context_, guarded.guardian_pipe.release()),
      guardian_pid_(guarded.guardian),
      guardian_pidfd_(std::move(guarded.guardian_pidfd)),
      timer_(context_),
      signals_(context_, guarded.signals,
               {[this](int signal, pid_t sender) { on_signal(signal, sender); },
                [this] { strangers_.child_ended(); }}),
      found_signals_(guarded.found),
      namespace_(make_namespace(config_)),
      strangers_(context_, {[this](pid_t pid) { return is_ours(pid); },
                            [this](const std::string& text) { console_.line(text); }}),
      remains_(context_, strangers_, namespace_.get(),
               [this](const std::string& text) { console_.line(text); }),
      error_files_(places_for_files(environment), config_.run_id, guarded.folder_note),
      limit_of_files_(raise_limit_of_files()),
      agent_(config_, host_name_, node_, environment),
      coordination_(context_, config_, random_bits(),
                    {{[this](const Order& order) { handle(OrderReceived{order}); },
                      [this](std::int32_t exit_code, const std::string& reason) {
                        handle(CoordinatorLost{exit_code, reason});
                      },
                      [this](const std::string& text) {
                        carry_out(Say{Say::Level::note, text});
                      },
                      [this](const std::string& text) { handle(CoordinatorSilent{text}); }},
                     [this](const std::string& text) { console_.line(text); }}) {
  if (event_file) {
    events_.emplace(context_, std::move(*event_file), EventLines(config_, host_name_, node_),
                    [this](const std::string& text) { console_.line(text); });
    events_->note_launch();
  }
  if (!streams_.owns_terminal || is_plain_terminal(environment)) return;
  status_line_.emplace(context_, console_, guardian_pid_,
                       [this] { return agent_.status_line(machine_now()); });
}

int AgentRunner::run() {
  if (!can_read_proc()) {
    console_.line("/proc can't be read: processes that workers leave behind may outlive the job");
  }
  if (namespace_ && !namespace_->proc_trouble().empty()) {
    console_.line("--isolate=pid: no /proc of their own for the workers (" +
                  namespace_->proc_trouble() + "): theirs shows other process numbers");
  }
  watch_guardian();
  rendezvous::NodeDescription description;
  description.id = node_;
  description.host = host_name_;
  description.address = config_.local_addr;
  description.workers = config_.workers;
  description.role = config_.role;
  description.limits = config_.nodes;
  description.max_restarts = config_.max_restarts;
  description.restart_delay = config_.restart_delay;
  description.notify = config_.on_failure == OnFailure::notify;
  if (config_.nodes.max > 1) description.node_rank = config_.node_rank;
  coordination_.join(description);
  context_.run();
  status_line_.reset();
  if (workers_) workers_->finish_output();
  const int exit_code = exit_ ? exit_->exit_code : rendezvous::exit_code::kLauncherFailed;
  tell_verdict(exit_code);
  if (exit_code != 0) say_output_trouble();
  if (error_files_.clean(exit_code != 0) && config_.verbose) {
    console_.line("error files of the workers are kept in " + error_files_.folder());
  }
  farewell_.emplace(context_, console_, events_ ? &*events_ : nullptr);
  if (hurried_) farewell_->hurry();
  // Only ending the process gets past a thread that is stuck in a write, or in a name lookup.
  if (!farewell_->run() || coordination_.is_looking_up()) ::_exit(exit_code);
  return exit_code;
}

void AgentRunner::tell_verdict(int exit_code) {
  VerdictContext context;
  ReportFacts facts{exit_code, {}, {}, config_.run_id, host_name_};
  context.max_restarts = config_.max_restarts;
  if (exit_) {
    context.workers_stopped = exit_->workers_stopped;
    context.others_failed = exit_->others_failed;
    facts.verdict = exit_->verdict;
    facts.reason = exit_->reason;
  }
  if (facts.verdict && facts.verdict->failure) {
    context.hints.interpreter = interpreter_of(config_, environment_);
    quote_what_came_late(*facts.verdict->failure);
  }
  if (facts.verdict) console_.text(verdict_text(*facts.verdict, context));
  if (config_.report_file.empty()) return;
  const auto trouble = write_report(config_.report_file, verdict_json(facts, context));
  if (trouble) console_.line(*trouble);
}

// What a worker has piped its output through writes the last of it after the worker's end.
void AgentRunner::quote_what_came_late(Failure& failure) const {
  if (!workers_ || failure.host != host_name_) return;
  std::string last_output = workers_->last_output_of(failure);
  if (!last_output.empty()) failure.last_output = std::move(last_output);
}

// ---- events ----------------------------------------------------------------------------------

void AgentRunner::handle(const AgentEvent& event) {
  if (events_ && !exit_) events_->note(event);  // the verdict is the last line
  note_and_carry_out(agent_.handle(event, machine_now()));
  arm_timer();
}

// For what is answered while effects are being carried out.
void AgentRunner::later(AgentEvent event) {
  boost::asio::post(context_, [this, event = std::move(event)] { handle(event); });
}

void AgentRunner::arm_timer() {
  if (status_line_) status_line_->look();
  const std::optional<Instant> deadline = agent_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(rendezvous::on_steady_clock(*deadline));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    note_and_carry_out(agent_.on_time(machine_now()));
    arm_timer();
  });
}

void AgentRunner::watch_guardian() {
  // It never writes: readable means end of file.
  guardian_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](const boost::system::error_code& error) {
                         if (error) return;
                         guardian_lost_ = true;
                         handle(GuardianLost{});
                       });
  outlive_guardian();
}

void AgentRunner::on_signal(int signal, pid_t sender) {
  if (signal == SIGWINCH && workers_) workers_->pass_on_window_size();
  handle(SignalReceived{signal, sender == guardian_pid_});
}

// ---- effects ---------------------------------------------------------------------------------

void AgentRunner::note_and_carry_out(const AgentEffects& effects) {
  if (events_) events_->note(effects);
  carry_out(effects);
}

void AgentRunner::carry_out(const AgentEffects& effects) {
  for (const AgentEffect& effect : effects) {
    std::visit([this](const auto& wanted) { carry_out(wanted); }, effect);
  }
}

void AgentRunner::carry_out(const ReportStatus& effect) {
  coordination_.report(effect.status);
}

void AgentRunner::carry_out(const OpenStore& effect) {
  auto endpoint = coordination_.open_store();
  if (endpoint) {
    later(StoreOpened{effect.round, std::move(endpoint).value()});
  } else {
    later(StoreFailed{effect.round, endpoint.error().message});
  }
}

void AgentRunner::carry_out(const CloseStore&) {
  coordination_.close_store();
}

void AgentRunner::carry_out(const SpawnWorkers& effect) {
  put_workers_aside();
  workers_ = std::make_unique<RoundWorkers>(
      context_, effect.placement,
      RoundWorkers::Callbacks{[this](const AgentEvent& event) { handle(event); },
                              [this] { strangers_.child_ended(); }});
  workers_->start(
      effect.plan, error_files_,
      {limit_of_files_, namespace_ ? std::optional(namespace_->birthplace()) : std::nullopt,
       found_signals_},
      console_, streams_);
  if (!workers_->output_trouble().empty()) status_line_.reset();  // they may write past us
  error_files_.tidy();                                            // now that the new ones run
  if (config_.verbose) say_output_trouble();
}

// One that was written off may still end, and is to be reaped then.
void AgentRunner::put_workers_aside() {
  std::erase_if(outlived_, [](const auto& workers) { return !workers->any_alive(); });
  if (workers_ && workers_->any_alive()) outlived_.push_back(std::move(workers_));
}

void AgentRunner::say_output_trouble() {
  const std::string trouble = workers_ ? workers_->output_trouble() : std::string();
  if (trouble.empty()) return;
  console_.line("output of workers doesn't pass through here, so their last words can't be told (" +
                trouble + ")");
}

void AgentRunner::carry_out(const SignalWorker& effect) {
  if (workers_) workers_->signal(effect.local_rank, effect.signal, effect.to_end);
}

void AgentRunner::carry_out(const KillWorker& effect) {
  if (workers_) workers_->kill(effect.local_rank);
}

void AgentRunner::carry_out(const PauseWorkers&) {
  if (workers_) workers_->signal_all(SIGSTOP);
}

void AgentRunner::carry_out(const ResumeWorkers&) {
  if (workers_) workers_->signal_all(SIGCONT);
}

void AgentRunner::carry_out(const StopGuardian&) {
  if (status_line_) status_line_->hide();  // what comes next is the shell's prompt
  signal_guardian(kStopGuardian);
}

void AgentRunner::carry_out(const ContinueGuardian& effect) {
  if (!effect.runs) signal_guardian(SIGCONT);
}

void AgentRunner::signal_guardian(int signal) {
  if (guardian_pidfd_.valid()) {
    ::syscall(SYS_pidfd_send_signal, guardian_pidfd_.get(), signal, nullptr, 0);
  }
}

void AgentRunner::carry_out(const Hurry&) {
  hurried_ = true;
  if (exit_) stop_waiting();
  if (farewell_) farewell_->hurry();
}

void AgentRunner::carry_out(const SweepRemains& effect) {
  remains_.sweep(workers_.get(), effect, [this, round = effect.round] {
    if (workers_) workers_->finish_output();
    handle(RemainsGone{round});
  });
}

void AgentRunner::carry_out(const KillRemains&) {
  remains_.kill();
}

bool AgentRunner::is_ours(pid_t pid) const {
  const auto owns = [pid](const auto& workers) { return workers->owns(pid); };
  return (workers_ && workers_->owns(pid)) || (namespace_ && namespace_->is_init(pid)) ||
         std::any_of(outlived_.begin(), outlived_.end(), owns);
}

void AgentRunner::carry_out(const PublishDeath& effect) {
  if (workers_) workers_->publish(effect.failure);
  coordination_.publish(effect.failure);
}

void AgentRunner::carry_out(const Say& effect) {
  if (effect.level != Say::Level::note || config_.verbose) console_.line(effect.text);
}

void AgentRunner::carry_out(const ExitAgent& effect) {
  exit_ = effect;
  timer_.cancel();
  if (guardian_lost_) return stop_waiting();
  coordination_.finish([this] { stop_waiting(); });
}

// For others, who may still be told why.
void AgentRunner::stop_waiting() {
  if (!farewell_) context_.stop();
}

}  // namespace ddp::launcher
