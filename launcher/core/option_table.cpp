#include "launcher/core/option_table.h"

#include <algorithm>
#include <array>

namespace ddp::launcher {
namespace {

using Given = GivenOptions;
using Group = OptionGroup;

constexpr auto kRows = std::to_array<OptionRow>({
    // ---- what to start -------------------------------------------------------------------------
    {.name = "nproc-per-node",
     .target = &Given::nproc_per_node,
     .group = Group::program,
     .value = "N",
     .help = "Workers on this node: a number, cpu, gpu, or auto (gpu if there is one, else cpu). "
             "Default 1.",
     .standing = Standing::better,
     .beside_torchrun = "`cpu` counts the CPUs that may be used, not all of the machine; `xpu` and "
                        "other accelerators aren't known",
     .variable = true,
     .choices = "auto cpu gpu"},
    {.name = "module",
     .letter = 'm',
     .target = &Given::module,
     .group = Group::program,
     .help = "PROGRAM is a Python module, started as python -m.",
     .standing = Standing::same,
     .variable = true},
    {.name = "no-python",
     .target = &Given::no_python,
     .group = Group::program,
     .help = "Start PROGRAM itself, found by PATH, whatever it is. Otherwise names in .py, .pyc, "
             ".pyz and files that can't be executed run under $PYTHON_EXEC or python3.",
     .standing = Standing::better,
     .beside_torchrun = "executable files run as they are without it too",
     .variable = true},
    {.name = "run-path",
     .target = &Given::run_path,
     .group = Group::program,
     .help = "PROGRAM is run by Python whatever its name: a file, or a folder or archive with a "
             "__main__.py. Wins over --module and --no-python.",
     .standing = Standing::better,
     .beside_torchrun = "in a fresh interpreter, started like any other script",
     .variable = true},
    {.name = "role",
     .target = &Given::role,
     .group = Group::program,
     .value = "NAME",
     .help = "ROLE_NAME of the workers. Default \"default\".",
     .standing = Standing::same,
     .variable = true},
    {.name = "pass-local-rank",
     .target = &Given::pass_local_rank,
     .group = Group::program,
     .value = "NAME",
     .help = "Put --local-rank=N before PROGRAM's arguments, as torch.distributed.launch does; "
             "=local_rank for the spelling that it had before PyTorch 2.",
     .choices = "local-rank local_rank",
     .implied = "local-rank"},
    {.name = "use-env",
     .target = &Given::use_env,
     .group = Group::program,
     .help = "Of torch.distributed.launch: no --local-rank for PROGRAM. The default here, as with "
             "torchrun.",
     .standing = Standing::same,
     .beside_torchrun = "of `torch.distributed.launch`; it is the default"},
    // ---- one node or several -------------------------------------------------------------------
    {.name = "standalone",
     .target = &Given::standalone,
     .group = Group::nodes,
     .help = "One node on a fresh port, whatever --rdzv-endpoint and --master-* say. The default "
             "for one node without a port is the same.",
     .standing = Standing::better,
     .beside_torchrun = "keeps a given `--rdzv-id`; more than one node is an error, not a wait",
     .variable = true},
    {.name = "nnodes",
     .target = &Given::nnodes,
     .group = Group::nodes,
     .value = "N",
     .help = "Number of nodes. Default 1.",
     .standing = Standing::partly,
     .beside_torchrun = "`MIN:MAX` with MIN < MAX is refused in this version",
     .variable = true},
    {.name = "node-rank",
     .target = &Given::node_rank,
     .group = Group::nodes,
     .value = "N",
     .help = "Place of this node, from 0; node 0 is the one at --master-addr. Default 0.",
     .standing = Standing::better,
     .beside_torchrun = "out of range it is an error, not a hang",
     .variable = true},
    {.name = "master-addr",
     .target = &Given::master_addr,
     .group = Group::nodes,
     .value = "HOST",
     .help = "Address of node 0. Default 127.0.0.1.",
     .standing = Standing::same,
     .variable = true},
    {.name = "master-port",
     .target = &Given::master_port,
     .group = Group::nodes,
     .value = "PORT",
     .help = "Port on node 0. Default: 29500 for several nodes, a fresh one for one.",
     .standing = Standing::same,
     .variable = true},
    {.name = "port-range",
     .target = &Given::port_range,
     .group = Group::nodes,
     .value = "A-B",
     .help = "Listen on ports from A to B only: fresh ports are taken there, and A is the default "
             "of --master-port for several nodes."},
    {.name = "local-addr",
     .target = &Given::local_addr,
     .group = Group::nodes,
     .value = "HOST",
     .help = "Address of this node for the others. Default: found out.",
     .standing = Standing::same,
     .variable = true},
    {.name = "rdzv-endpoint",
     .target = &Given::rdzv_endpoint,
     .group = Group::nodes,
     .value = "H:PORT",
     .help = "The same as --master-addr and --master-port, and wins over them (with c10d: checked "
             "only).",
     .standing = Standing::same,
     .variable = true},
    {.name = "rdzv-backend",
     .target = &Given::rdzv_backend,
     .group = Group::nodes,
     .value = "NAME",
     .help = "static (default); c10d for one node.",
     .standing = Standing::partly,
     .beside_torchrun = "`static`, and `c10d` for one node; `c10d` across nodes, `etcd` and "
                        "`etcd-v2` are refused in this version",
     .variable = true,
     .choices = "static c10d"},
    {.name = "rdzv-id",
     .target = &Given::rdzv_id,
     .group = Group::nodes,
     .value = "ID",
     .help = "Name of the job, the same on all nodes. Default \"none\", or random for one node.",
     .standing = Standing::same,
     .variable = true},
    {.name = "rdzv-conf",
     .target = &Given::rdzv_conf,
     .group = Group::nodes,
     .value = "K=V,...",
     .help = "join_timeout or timeout: seconds to wait for all nodes. Default 900.",
     .standing = Standing::partly,
     .beside_torchrun = "`join_timeout` and `timeout`; other keys are refused, where torchrun "
                        "ignores what it doesn't know",
     .variable = true},
    // ---- failures and stopping -----------------------------------------------------------------
    {.name = "max-restarts",
     .target = &Given::max_restarts,
     .group = Group::stopping,
     .value = "N",
     .help = "How often the job may restart all workers after a failure. Default 0.",
     .standing = Standing::better,
     .beside_torchrun = "of the whole job, not of each node; every restart has an empty store",
     .variable = true},
    {.name = "shutdown-timeout",
     .target = &Given::shutdown_timeout,
     .group = Group::stopping,
     .value = "S",
     .help = "Seconds between SIGTERM and SIGKILL. Default 30.",
     .standing = Standing::better,
     .beside_torchrun = "holds for every stop, also for one before a restart",
     .variable = true},
    {.name = "signals-to-handle",
     .target = &Given::signals_to_handle,
     .group = Group::stopping,
     .value = "SIG,...",
     .help = "Signals that are passed on to the workers and end the job, besides SIGTERM, SIGINT, "
             "SIGHUP and SIGQUIT, which always do.",
     .standing = Standing::better,
     .beside_torchrun = "adds to the four that always end the job; an unknown name is an error",
     .variable = true},
    {.name = "on-failure",
     .target = &Given::on_failure,
     .group = Group::stopping,
     .value = "WHAT",
     .help = "restart (default): when a worker fails all are stopped; notify: the others are told "
             "and run on, for programs that handle it.",
     .choices = "restart notify"},
    {.name = "restart-delay",
     .target = &Given::restart_delay,
     .group = Group::stopping,
     .value = "S",
     .help = "Longest pause before a restart: grows from nothing while workers fail again and "
             "again at once. 0: never any. Default 5."},
    {.name = "isolate",
     .target = &Given::isolate,
     .group = Group::stopping,
     .value = "WHAT",
     .help = "pid: workers get a PID namespace, so that nothing of theirs outlives a SIGKILL of "
             "both processes of ddplaunch. Default none.",
     .choices = "none pid"},
    // ---- what happened -------------------------------------------------------------------------
    {.name = "report",
     .target = &Given::report_file,
     .group = Group::reports,
     .value = "FILE",
     .help = "Write the verdict to FILE as JSON.",
     .choices = "FILE"},
    {.name = "events",
     .target = &Given::events_file,
     .group = Group::reports,
     .value = "FILE",
     .help = "Write what happens to FILE, a line of JSON each.",
     .choices = "FILE"},
    {.name = "dry-run",
     .target = &Given::dry_run,
     .group = Group::reports,
     .help = "Start nothing; show what each worker would be started with, and where each value "
             "comes from. With -v the inherited environment too."},
    {.name = "verbose",
     .letter = 'v',
     .target = &Given::verbose,
     .group = Group::reports,
     .help = "Say on stderr what is going on."},
    // ---- accepted without effect ---------------------------------------------------------------
    {.name = "monitor-interval",
     .target = &Given::monitor_interval,
     .group = Group::without_effect,
     .value = "S",
     .help = "Nothing is polled here: exits are noticed at once.",
     .standing = Standing::better,
     .beside_torchrun = "checked, and without effect: nothing is polled, exits are noticed at once",
     .variable = true},
    {.name = "start-method",
     .target = &Given::start_method,
     .group = Group::without_effect,
     .value = "NAME",
     .help = "Workers are always started as programs.",
     .standing = Standing::same,
     .beside_torchrun = "checked, and without effect: workers are programs (there too, but for "
                        "`--run-path`)",
     .variable = true,
     .choices = "spawn fork forkserver"},
    // ---- other ---------------------------------------------------------------------------------
    {.name = "legacy-store",
     .target = &Given::legacy_store,
     .group = Group::other,
     .value = "VERSION",
     .help = "Which PyTorch clients older than 2.2 are taken for: 2.0 (default) or 2.1. Later ones "
             "are recognised.",
     .choices = "2.0 2.1"},
    {.name = "print-completion",
     .target = &Given::print_completion,
     .group = Group::other,
     .value = "SHELL",
     .help = "Write completion for bash to stdout: eval \"$(ddplaunch --print-completion bash)\".",
     .standing = Standing::partly,
     .beside_torchrun = "`bash`, and nothing to install; `zsh` and `tcsh` are refused",
     .choices = "bash"},
    {.name = "version", .target = &Given::version, .help = "Show the version."},
    {.name = "help",
     .letter = 'h',
     .target = &Given::help,
     .help = "Show this.",
     .standing = Standing::same},
    // ---- torchrun's that we recognise and refuse -----------------------------------------------
    {.name = "log-dir",
     .group = Group::refused,
     .value = "FOLDER",
     .standing = Standing::refused,
     .variable = true},
    {.name = "redirects",
     .letter = 'r',
     .group = Group::refused,
     .value = "WHICH",
     .standing = Standing::refused,
     .variable = true,
     .harmless = "0"},
    {.name = "tee",
     .letter = 't',
     .group = Group::refused,
     .value = "WHICH",
     .standing = Standing::refused,
     .variable = true,
     .harmless = "0"},
    {.name = "local-ranks-filter",
     .group = Group::refused,
     .value = "N,...",
     .standing = Standing::refused,
     .variable = true,
     .harmless = ""},
    {.name = "log-line-prefix-template",
     .group = Group::refused,
     .value = "TEXT",
     .standing = Standing::refused,
     .variable = true},
    {.name = "duplicate-stdout-filters",
     .group = Group::refused,
     .value = "TEXT,...",
     .standing = Standing::refused,
     .variable = true,
     .harmless = ""},
    {.name = "duplicate-stderr-filters",
     .group = Group::refused,
     .value = "TEXT,...",
     .standing = Standing::refused,
     .variable = true,
     .harmless = ""},
    {.name = "numa-binding",
     .group = Group::refused,
     .value = "HOW",
     .standing = Standing::refused},
    {.name = "virtual-local-rank",
     .group = Group::refused,
     .standing = Standing::refused,
     .variable = true},
    {.name = "event-log-handler",
     .group = Group::refused,
     .value = "NAME",
     .standing = Standing::refused,
     .beside_torchrun = "but for `null`, its default; `--events FILE` has what happens, as JSON",
     .variable = true,
     .harmless = "null"},
    {.name = "logs-specs",
     .group = Group::refused,
     .value = "NAME",
     .standing = Standing::refused,
     .beside_torchrun = "a plug-in written in Python, and there is no Python here"},
});

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

std::span<const OptionRow> option_table() {
  return kRows;
}

const char* title_of(OptionGroup group) {
  switch (group) {
    case OptionGroup::program:
      return "What to start";
    case OptionGroup::nodes:
      return "One node or several";
    case OptionGroup::stopping:
      return "Failures and stopping";
    case OptionGroup::reports:
      return "What happens";
    case OptionGroup::without_effect:
      return "Accepted without effect";
    case OptionGroup::other:
      return "Other";
    case OptionGroup::refused:
      return "Refused";
  }
  return "";
}

std::vector<std::string> spellings_of(const OptionRow& row) {
  const std::string name = row.name;
  std::vector<std::string> spellings{"--" + name};
  if (const std::string other = with_underscores(name); other != name) {
    spellings.push_back("--" + other);
  }
  if (row.letter != '\0') {
    spellings.push_back(std::string("-") + row.letter);
  }
  return spellings;
}

std::string variable_of(const OptionRow& row) {
  std::string name = with_underscores(row.name);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return "PET_" + name;
}

std::string synopsis_of(const OptionRow& row) {
  std::string text = row.letter != '\0' ? std::string("-") + row.letter + ", " : "    ";
  text.append("--").append(row.name);
  if (row.implied != nullptr) {
    text.append("[=").append(row.value).append("]");
  } else if (!is_flag(row)) {
    text.append(" ").append(row.value);
  }
  return text;
}

}  // namespace ddp::launcher
