#include "launcher/core/command_line.h"

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "launcher/core/option_scanner.h"

// CLI11 holds what the options are called, where they are stored and how --help shows them; the
// scanner knows the grammar, because CLI11's differs from argparse's (prefixes, empty values).

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::Result;

constexpr std::size_t kNameColumn = 28;
constexpr std::size_t kTextWidth = 51;  // with the names: 79 columns

constexpr const char* kDescription =
    "Starts a distributed training job: the program once per worker, with RANK,\n"
    "WORLD_SIZE, MASTER_ADDR, ... set as torchrun sets them.\n";

constexpr const char* kFooter =
    "Options can be written with - or _ between words, as --name VALUE or\n"
    "--name=VALUE, and shortened while unique; the last one wins. PET_<NAME> in the\n"
    "environment (PET_NPROC_PER_NODE=4) gives a default. All that follows PROGRAM\n"
    "goes to it unchanged, but for what torchrun replaces: $local_rank and\n"
    "${local_rank} become the local rank, $$ a single $.\n"
    "\n"
    "Known from torchrun, not in this version: --log-dir, --redirects, --tee,\n"
    "--local-ranks-filter, --logs-specs, --numa-binding, --virtual-local-rank,\n"
    "--run-path, --event-log-handler, --duplicate-stdout-filters,\n"
    "--duplicate-stderr-filters.\n"
    "\n"
    "Examples:\n"
    "  ddplaunch --nproc-per-node 2 train.py --epochs 3\n"
    "  ddplaunch --nproc-per-node gpu --max-restarts 3 ./train_mlp\n"
    "  ddplaunch --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 train.py  # 1st node\n"
    "  ddplaunch --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 train.py  # 2nd node\n";

std::string wrap(const std::string& text, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column > 0) {
      const bool fits = column + 1 + length <= width;
      result += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    result.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  return result;
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kNameColumn); }

  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: ddplaunch [options] PROGRAM [arguments of the program]\n";
  }
  // One spelling; the footer names the other.
  std::string make_option_name(const CLI::Option* option, bool) const override {
    const std::string name = "--" + option->get_lnames().front();
    return option->get_snames().empty() ? "    " + name
                                        : "-" + option->get_snames().front() + ", " + name;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrap(option->get_description(), kTextWidth);
  }
};

// torchrun's options that we recognise and refuse. `harmless` asks for what we do anyway.
struct Absent {
  const char* names;
  const char* harmless;
  bool from_environment;
};

constexpr Absent kAbsentOptions[] = {
    {"--log-dir,--log_dir", nullptr, true},
    {"-r,--redirects", "0", true},
    {"-t,--tee", "0", true},
    {"--local-ranks-filter,--local_ranks_filter", "", true},
    {"--logs-specs,--logs_specs", nullptr, false},
    {"--numa-binding,--numa_binding", nullptr, false},
    {"--event-log-handler,--event_log_handler", "null", true},
    {"--duplicate-stdout-filters,--duplicate_stdout_filters", "", true},
    {"--duplicate-stderr-filters,--duplicate_stderr_filters", "", true},
};
constexpr const char* kAbsentFlags[] = {"--virtual-local-rank,--virtual_local_rank",
                                        "--run-path,--run_path"};

struct Declared {
  const CLI::Option* option;
  bool from_environment;  // has a PET_ variable
};

class Parser {
 public:
  Parser() : app_(kDescription, "ddplaunch") {
    app_.set_help_flag();
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.footer(kFooter);
    declare_program();
    declare_nodes();
    declare_stopping();
    declare_reports();
    declare_other();
    declare_absent();
  }

  CommandLine parse(const std::vector<std::string>& arguments, const Environment& environment,
                    const HostFacts& host) {
    Result<std::vector<std::string>> tokens = defaults_from(environment);
    if (!tokens) {
      return UsageError{tokens.error().message};
    }
    const Result<ScannedLine> line = scan_options(specs(), arguments);
    if (!line) {
      return UsageError{line.error().message};
    }
    for (const ScannedOption& option : line.value().options) {
      append(*options_[option.spec].option, option.value, tokens.value());
    }
    try {
      std::reverse(tokens.value().begin(), tokens.value().end());  // as CLI11 wants them
      app_.parse(tokens.value());
    } catch (const CLI::ParseError& error) {
      return UsageError{error.what()};
    }
    return finish(line.value(), environment, host);
  }

 private:
  template <typename Target>
  void value(const char* names, Target& target, const char* type, const char* text) {
    CLI::Option* option = app_.add_option(names, target, text);
    option->type_name(type)->take_last()->group(group_);
    remember(option);
  }

  // One that torchrun doesn't have, and so no variable of its.
  void own_value(const char* names, std::string& target, const char* type, const char* text) {
    value(names, target, type, text);
    options_.back().from_environment = false;
  }

  void flag(const char* names, bool& target, const char* text) {
    CLI::Option* option = app_.add_flag(names, target, text);
    option->take_last()->group(group_);
    remember(option);
  }

  void remember(CLI::Option* option, bool from_environment = true) {
    options_.push_back(Declared{option, from_environment});
  }

  void declare_program() {
    group_ = "What to start";
    value("--nproc-per-node,--nproc_per_node", given_.nproc_per_node, "N",
          "Workers on this node: a number, cpu, gpu, or auto (gpu if there is one, else cpu). "
          "Default 1.");
    flag("-m,--module", given_.module, "PROGRAM is a Python module, started as python -m.");
    flag("--no-python,--no_python", given_.no_python,
         "Start PROGRAM itself, found by PATH, whatever it is. Otherwise names in .py, .pyc, .pyz "
         "and files that can't be executed run under $PYTHON_EXEC or python3.");
    value("--role", given_.role, "NAME", "ROLE_NAME of the workers. Default \"default\".");
  }

  void declare_nodes() {
    group_ = "One node or several";
    flag("--standalone", given_.standalone,
         "One node on a fresh port, whatever --rdzv-endpoint and --master-* say. The default for "
         "one node without a port is the same.");
    value("--nnodes", given_.nnodes, "N", "Number of nodes. Default 1.");
    value("--node-rank,--node_rank", given_.node_rank, "N",
          "Place of this node, from 0; node 0 is the one at --master-addr. Default 0.");
    value("--master-addr,--master_addr", given_.master_addr, "HOST",
          "Address of node 0. Default 127.0.0.1.");
    value("--master-port,--master_port", given_.master_port, "PORT",
          "Port on node 0. Default: 29500 for several nodes, a fresh one for one.");
    value("--local-addr,--local_addr", given_.local_addr, "HOST",
          "Address of this node for the others. Default: found out.");
    value("--rdzv-endpoint,--rdzv_endpoint", given_.rdzv_endpoint, "H:PORT",
          "The same as --master-addr and --master-port, and wins over them (with c10d: checked "
          "only).");
    value("--rdzv-backend,--rdzv_backend", given_.rdzv_backend, "NAME",
          "static (default); c10d for one node.");
    value("--rdzv-id,--rdzv_id", given_.rdzv_id, "ID",
          "Name of the job, the same on all nodes. Default \"none\", or random for one node.");
    value("--rdzv-conf,--rdzv_conf", given_.rdzv_conf, "K=V,...",
          "join_timeout or timeout: seconds to wait for all nodes. Default 900.");
  }

  void declare_stopping() {
    group_ = "Failures and stopping";
    value("--max-restarts,--max_restarts", given_.max_restarts, "N",
          "How often the job may restart all workers after a failure. Default 0.");
    value("--shutdown-timeout,--shutdown_timeout", given_.shutdown_timeout, "S",
          "Seconds between SIGTERM and SIGKILL. Default 30.");
    value("--signals-to-handle,--signals_to_handle", given_.signals_to_handle, "SIG,...",
          "Signals that are passed on to the workers and end the job, besides SIGTERM, SIGINT, "
          "SIGHUP and SIGQUIT, which always do.");
    own_value("--on-failure,--on_failure", given_.on_failure, "WHAT",
              "restart (default): when a worker fails all are stopped; notify: the others are told "
              "and run on, for programs that handle it.");
    own_value("--restart-delay,--restart_delay", given_.restart_delay, "S",
              "Longest pause before a restart: grows from nothing while workers fail again and "
              "again at once. 0: never any. Default 5.");
    own_value("--isolate", given_.isolate, "WHAT",
              "pid: workers get a PID namespace, so that nothing of theirs outlives a SIGKILL of "
              "both processes of ddplaunch. Default none.");
  }

  void declare_reports() {
    group_ = "What happened";
    own_value("--report", given_.report_file, "FILE", "Write the verdict to FILE as JSON.");
    own_value("--events", given_.events_file, "FILE",
              "Write what happens to FILE, a line of JSON each.");
    flag("-v,--verbose", given_.verbose, "Say on stderr what is going on.");
    options_.back().from_environment = false;
  }

  void declare_other() {
    group_ = "Accepted without effect";
    value("--monitor-interval,--monitor_interval", given_.monitor_interval, "S",
          "Nothing is polled here: exits are noticed at once.");
    value("--start-method,--start_method", given_.start_method, "NAME",
          "Workers are always started as programs.");
    group_ = "Other";
    own_value("--legacy-store,--legacy_store", given_.legacy_store, "VERSION",
              "Which PyTorch clients older than 2.2 are taken for: 2.0 (default) or 2.1. Later "
              "ones are recognised.");
    flag("--version", version_, "Show the version.");
    flag("-h,--help", help_, "Show this.");
    for (std::size_t i = options_.size() - 2; i < options_.size(); ++i) {
      options_[i].from_environment = false;  // ours, or no setting
    }
  }

  void declare_absent() {
    for (const Absent& absent : kAbsentOptions) {
      absent_values_.emplace_back();
      CLI::Option* option = app_.add_option(absent.names, absent_values_.back());
      remember(option->take_last()->group(""), absent.from_environment);
    }
    for (const char* names : kAbsentFlags) {
      absent_flags_.push_back(false);
      CLI::Option* option = app_.add_flag(names, absent_flags_.back());
      remember(option->take_last()->group(""));
    }
  }

  static bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

  std::vector<OptionSpec> specs() const {
    std::vector<OptionSpec> result;
    for (const auto& [option, from_environment] : options_) {
      OptionSpec spec;
      for (const std::string& name : option->get_lnames()) {
        spec.names.push_back("--" + name);
      }
      for (const std::string& name : option->get_snames()) {
        spec.names.push_back("-" + name);
      }
      spec.takes_value = takes_value(*option);
      spec.ends_scan = spec.names[0] == "--help" || spec.names[0] == "--version";
      result.push_back(std::move(spec));
    }
    return result;
  }

  static void append(const CLI::Option& option, const std::string& value,
                     std::vector<std::string>& tokens) {
    tokens.push_back("--" + option.get_lnames().front());
    if (takes_value(option)) {
      tokens.push_back(value);
    }
  }

  // PET_NPROC_PER_NODE=4 stands for --nproc-per-node 4, PET_STANDALONE=1 for --standalone.
  Result<std::vector<std::string>> defaults_from(const Environment& environment) const {
    std::vector<std::string> tokens;
    for (const auto& [option, from_environment] : options_) {
      std::string name = "PET_" + option->get_lnames().front();
      std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      });
      const auto found = environment.find(name);
      if (found == environment.end() || !from_environment) {
        continue;
      }
      if (takes_value(*option)) {
        append(*option, found->second, tokens);
        continue;
      }
      const std::string& text = found->second;
      const bool number = !text.empty() && std::all_of(text.begin(), text.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
      if (!number) {
        return Error{name + " takes 0 or 1, not \"" + text + "\""};
      }
      if (text.find_first_not_of('0') != std::string::npos) {
        append(*option, "", tokens);
      }
    }
    return tokens;
  }

  CommandLine finish(const ScannedLine& line, const Environment& environment,
                     const HostFacts& host) {
    if (help_) {
      return ShowText{help_text()};
    }
    if (version_) {
      return ShowText{"ddplaunch " DDP_VERSION "\n"};
    }
    if (const auto name = absent_option()) {
      return UsageError{*name + " is not in this version"};
    }
    if (!line.program) {
      return UsageError{
          "no program given; usage: ddplaunch [options] PROGRAM [arguments], see --help"};
    }
    given_.program = *line.program;
    given_.arguments = line.arguments;
    Result<LaunchConfig> config = make_config(given_, environment, host);
    if (!config) {
      return UsageError{config.error().message};
    }
    return std::move(config).value();
  }

  std::string help_text() const {
    std::string text = app_.help();
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) {
      text.erase(at, 1);
    }
    return text;
  }

  std::optional<std::string> absent_option() const {
    auto value = absent_values_.begin();
    for (const Absent& absent : kAbsentOptions) {
      const bool harmless = absent.harmless != nullptr && *value == absent.harmless;
      if (value->has_value() && !harmless) {
        return long_name(absent.names);
      }
      ++value;
    }
    auto flag = absent_flags_.begin();
    for (const char* names : kAbsentFlags) {
      if (*flag++) {
        return long_name(names);
      }
    }
    return std::nullopt;
  }

  static std::string long_name(const std::string& names) {
    const std::size_t begin = names.find("--");
    return names.substr(begin, names.find(',', begin) - begin);
  }

  CLI::App app_;
  GivenOptions given_;
  std::string group_;
  bool help_ = false;
  bool version_ = false;
  std::list<std::optional<std::string>> absent_values_;  // lists: CLI11 keeps references
  std::list<bool> absent_flags_;
  std::vector<Declared> options_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments,
                               const Environment& environment, const HostFacts& host) {
  CommandLine line = Parser().parse(arguments, environment, host);
  if (auto* error = std::get_if<UsageError>(&line)) {
    // It quotes what was given, and that may be anything.
    for (char& c : error->message) {
      c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return line;
}

}  // namespace ddp::launcher
