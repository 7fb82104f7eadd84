#include "launcher/core/command_line.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <sstream>

namespace {

using namespace ddp::launcher;
using Words = std::vector<std::string>;
using ddp::rendezvous::Port;
using std::chrono::seconds;

// A machine with 6 CPUs and `gpus` GPUs, and three files: run (executable), notes, sub/tool
// (executable).
HostFacts host(std::int32_t gpus = 0) {
  HostFacts facts;
  facts.cpus = 6;
  facts.count_gpus = [gpus] { return gpus; };
  facts.is_file = [](const std::string& path) {
    static const Words files{"run",       "notes",   "sub/tool", "train.py",
                             "train.pyc", "app.pyz", "a.py"};
    return std::find(files.begin(), files.end(), path) != files.end();
  };
  facts.is_executable_file = [](const std::string& path) {
    return path == "run" || path == "sub/tool";
  };
  facts.exists = [](const std::string& path) { return path == "sub" || path == "notes"; };
  facts.random_run_id = "random-id";
  return facts;
}

CommandLine parse(const Words& words, const Environment& environment = {}, std::int32_t gpus = 0) {
  return parse_command_line(words, environment, host(gpus));
}

LaunchConfig config(const Words& words, const Environment& environment = {},
                    std::int32_t gpus = 0) {
  const CommandLine line = parse(words, environment, gpus);
  if (const auto* error = std::get_if<UsageError>(&line)) {
    FAIL(error->message);
  }
  return std::get<LaunchConfig>(line);
}

std::string error(const Words& words, const Environment& environment = {}) {
  const CommandLine line = parse(words, environment);
  REQUIRE(std::holds_alternative<UsageError>(line));
  const std::string message = std::get<UsageError>(line).message;
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

std::string text(const Words& words) {
  return std::get<ShowText>(parse(words)).text;
}

}  // namespace

TEST_CASE("command line: the defaults are torchrun's of today") {
  const LaunchConfig made = config({"train.py"});
  CHECK(made.workers == 1);
  CHECK(made.nodes == NodeLimits{1, 1});
  CHECK(made.max_restarts == 0);
  CHECK(made.role == "default");
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(made.master_port == std::nullopt);
  CHECK(made.run_id == "random-id");
  CHECK(made.shutdown_timeout == seconds(30));
  CHECK_FALSE(made.standalone);
  CHECK_FALSE(made.verbose);
}

TEST_CASE("command line: every option reaches the configuration") {
  const LaunchConfig made = config({"--nproc-per-node=3",
                                    "--nnodes",
                                    "2",
                                    "--node-rank=1",
                                    "--master-addr",
                                    "10.0.0.1",
                                    "--master-port=4000",
                                    "--rdzv-id",
                                    "job",
                                    "--role=trainer",
                                    "--local-addr",
                                    "10.0.0.2",
                                    "--max-restarts",
                                    "4",
                                    "--shutdown-timeout=7",
                                    "--rdzv-conf",
                                    " timeout = 50 ",
                                    "-v",
                                    "--no-python",
                                    "prog",
                                    "a",
                                    "--nproc-per-node",
                                    "9",
                                    "--",
                                    "\xff$x",
                                    ""});
  CHECK(made.workers == 3);
  CHECK(made.nodes == NodeLimits{2, 2});
  CHECK(made.node_rank == 1);
  CHECK(made.master_addr == "10.0.0.1");
  CHECK(made.master_port->value == 4000);
  CHECK(made.run_id == "job");
  CHECK(made.role == "trainer");
  CHECK(made.local_addr == "10.0.0.2");
  CHECK(made.max_restarts == 4);
  CHECK(made.shutdown_timeout == seconds(7));
  CHECK(made.join_timeout == seconds(50));
  CHECK(made.verbose);
  CHECK(made.kind == ProgramKind::executable);
  CHECK(made.program == "prog");
  CHECK(made.arguments == Words{"a", "--nproc-per-node", "9", "--", "\xff$x", ""});
}

TEST_CASE("command line: underscores, prefixes, the last one wins") {
  CHECK(config({"--nproc_per_node=2", "x"}).workers == 2);
  CHECK(config({"--nproc", "2", "x"}).workers == 2);
  CHECK(config({"--nproc_per_n", "2", "x"}).workers == 2);
  CHECK(config({"--nproc-per-node=2", "--nproc_per_node", "5", "x"}).workers == 5);
  CHECK(config({"--max-restarts", "010", "x"}).max_restarts == 10);
}

TEST_CASE("command line: the number of workers can be asked of the host") {
  CHECK(config({"--nproc-per-node", "cpu", "x"}, {}, 2).workers == 6);
  CHECK(config({"--nproc-per-node", "gpu", "x"}, {}, 2).workers == 2);
  CHECK(config({"--nproc-per-node", "auto", "x"}, {}, 2).workers == 2);
  CHECK(config({"--nproc-per-node", "auto", "x"}).workers == 6);
  CHECK(error({"--nproc-per-node", "gpu", "x"}) ==
        "--nproc-per-node gpu: no GPU is visible on this host");
}

TEST_CASE("command line: numbers are checked at their limits") {
  CHECK(config({"--nproc-per-node", "65536", "x"}).workers == 65536);
  for (const char* bad : {"0", "-1", "65537", "99999999999999999999", "two", "", "1.5", "0x2"}) {
    CHECK(error({"--nproc-per-node", bad, "x"}) ==
          "--nproc-per-node takes a whole number from 1 to 65536, cpu, gpu or auto, not \"" +
              std::string(bad) + "\"");
  }
  CHECK(config({"--nnodes", "32767", "x"}).nodes.max == 32767);
  CHECK(error({"--nnodes", "32768", "x"}) ==
        "--nnodes takes N or MIN:MAX with 1 <= MIN <= MAX, not \"32768\"");
  CHECK(config({"--master-port", "65535", "x"}).master_port->value == 65535);
  CHECK(error({"--master-port", "65536", "x"}) ==
        "--master-port takes a whole number from 0 to 65535, not \"65536\"");
  CHECK(config({"--shutdown-timeout", "0", "x"}).shutdown_timeout == seconds(0));
  CHECK(error({"--shutdown-timeout", "-1", "x"}) ==
        "--shutdown-timeout takes a whole number from 0 to 1000000000, not \"-1\"");
  CHECK(error({"--max-restarts", "-1", "x"}) ==
        "--max-restarts takes a whole number of at least 0, not \"-1\"");
  CHECK(error({"--max-restarts", "3000000000", "x"}) ==
        "--max-restarts takes a whole number of at least 0, not \"3000000000\"");
}

TEST_CASE("command line: what kind of program it is") {
  const auto kind = [](const char* name) { return config({name}).kind; };
  CHECK(kind("train.py") == ProgramKind::python_script);
  CHECK(kind("train.pyc") == ProgramKind::python_script);
  CHECK(kind("app.pyz") == ProgramKind::python_script);
  CHECK(kind("run_${local_rank}.py") == ProgramKind::python_script);
  CHECK(kind("notes") == ProgramKind::python_script);
  CHECK(kind("sub/tool") == ProgramKind::executable);
  CHECK(kind("env") == ProgramKind::executable);
  CHECK(kind(".py") == ProgramKind::executable);
  CHECK(config({"sub/tool"}).program == "sub/tool");
  CHECK(config({"run"}).program == "./run");
  CHECK(config({"run"}).kind == ProgramKind::executable);
  CHECK(config({"--no-python", "run"}).program == "run");
  CHECK(config({"--no-python", "train.py"}).kind == ProgramKind::executable);
  // Not there: starting it says so with 127, where Python would say 2 and be tried again.
  CHECK(kind("trian.py") == ProgramKind::executable);
  CHECK(config({"trian.py"}).program == "./trian.py");
  CHECK(config({"sub/trian.py"}).program == "sub/trian.py");
  CHECK(config({"-m", "pkg.train"}).kind == ProgramKind::python_module);
  CHECK(error({"-m", "--no-python", "x"}) ==
        "--module and --no-python exclude each other: a module needs Python");
}

TEST_CASE("command line: standalone is one node on a fresh port with an id of its own") {
  const LaunchConfig made = config({"--standalone", "--master-port", "4000", "x"});
  CHECK(made.standalone);
  CHECK(made.master_port == std::nullopt);
  CHECK(made.run_id == "random-id");
  CHECK(config({"--standalone", "--rdzv-id", "mine", "x"}).run_id == "mine");
  CHECK(error({"--standalone", "--nnodes", "2", "x"}) ==
        "--standalone is for one node, but --nnodes is 2; for several give --master-addr and "
        "--node-rank instead");
}

TEST_CASE("command line: several nodes meet at the master's address") {
  const LaunchConfig made = config({"--nnodes=2", "--master-addr=[fd00::1]", "x"});
  CHECK(made.master_addr == "fd00::1");
  CHECK(made.master_port->value == 29500);
  CHECK(made.run_id == "none");
  CHECK(made.node_rank == 0);
  CHECK(made.join_timeout == seconds(900));
  CHECK(config({"--nnodes=3:3", "x"}).nodes == NodeLimits{3, 3});
  CHECK(error({"--nnodes=2", "--node-rank=2", "x"}) ==
        "--node-rank 2 is out of range: with --nnodes 2 it is from 0 to 1");
  CHECK(error({"--nnodes=2", "--master-port=0", "x"}) ==
        "port 0 (a fresh one) cannot work with several nodes: they could not know it");
}

TEST_CASE("command line: elastic node counts are refused, nonsense too") {
  CHECK(error({"--nnodes=1:4", "x"}) ==
        "--nnodes 1:4: a number of nodes that may change (MIN < MAX) is not in this version");
  for (const char* bad : {"0", "2:1", "1:2:3", "a", "", ":", "-1", "1:"}) {
    CHECK(error({std::string("--nnodes=") + bad, "x"}) ==
          "--nnodes takes N or MIN:MAX with 1 <= MIN <= MAX, not \"" + std::string(bad) + "\"");
  }
}

TEST_CASE("command line: a static endpoint wins over address and port") {
  const LaunchConfig made = config({"--nnodes=2", "--rdzv-endpoint= host-1:4321 ",
                                    "--master-addr=other", "--master-port=1", "x"});
  CHECK(made.master_addr == "host-1");
  CHECK(made.master_port->value == 4321);
  CHECK(config({"--rdzv-endpoint=[::1]:77", "x"}).master_addr == "::1");
  CHECK(error({"--rdzv-endpoint=host", "x"}) ==
        "--rdzv-endpoint needs a port with the static backend: host:port");
  CHECK(error({"--rdzv-endpoint=[::1]", "x"}) ==
        "--rdzv-endpoint needs a port with the static backend: host:port");
  CHECK(error({"--rdzv-endpoint=a b:1", "x"}) == "--rdzv-endpoint takes host:port, not \"a b:1\"");
  CHECK(error({"--rdzv-endpoint=h:x", "x"}) ==
        "the port of --rdzv-endpoint takes a whole number from 0 to 65535, not \"x\"");
}

TEST_CASE("command line: c10d works for one node; other backends are named as absent") {
  const LaunchConfig made = config({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", "x"});
  CHECK(made.master_port == std::nullopt);
  CHECK(made.run_id == "random-id");
  CHECK(config({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost", "--rdzv-id=7", "x"}).run_id ==
        "7");
  CHECK(error({"--rdzv-backend=c10d", "--nnodes=2", "x"}) ==
        "--rdzv-backend c10d with several nodes is not in this version; use the default (static) "
        "with --master-addr, --master-port and --node-rank");
  CHECK(error({"--rdzv-backend=etcd", "x"}) ==
        "--rdzv-backend etcd is not in this version; static is, and for one node c10d");
}

TEST_CASE("command line: an empty run id becomes a random one") {
  CHECK(config({"--rdzv-id=", "x"}).run_id == "random-id");
  CHECK(config({"--rdzv-id=", "--nnodes=2", "x"}).run_id == "random-id");
  CHECK(config({"--rdzv-id=job", "x"}).run_id == "job");
}

TEST_CASE("command line: rdzv-conf knows the time to wait, and names what it does not know") {
  CHECK(config({"--rdzv-conf=join_timeout=5", "x"}).join_timeout == seconds(5));
  CHECK(config({"--rdzv-conf=join_timeout=5,timeout=6", "x"}).join_timeout == seconds(6));
  CHECK(error({"--rdzv-conf=last_call_timeout=5", "x"}) ==
        "--rdzv-conf: \"last_call_timeout\" is not in this version; known are join_timeout and "
        "timeout");
  CHECK(error({"--rdzv-conf=timeout", "x"}) ==
        "--rdzv-conf takes key=value,key=value, not \"timeout\"");
  CHECK(error({"--rdzv-conf=timeout=0", "x"}) ==
        "--rdzv-conf timeout takes a whole number from 1 to 1000000000, not \"0\"");
}

TEST_CASE("command line: accepted without effect, but not without sense") {
  CHECK(config({"--monitor-interval=0.5", "--start-method=fork", "x"}).workers == 1);
  for (const char* bad : {"0", "-1", "abc", "", "nan", "1x"}) {
    CHECK(error({std::string("--monitor-interval=") + bad, "x"}) ==
          "--monitor-interval takes a number of seconds above 0, not \"" + std::string(bad) + "\"");
  }
  CHECK(error({"--start-method=thread", "x"}) ==
        "--start-method takes spawn, fork or forkserver, not \"thread\"");
}

TEST_CASE("command line: torchrun's other options are refused, never ignored") {
  for (const char* option :
       {"--log-dir", "--log_dir", "--redirects", "--tee", "--local-ranks-filter", "--logs-specs",
        "--numa-binding", "--event-log-handler", "--duplicate-stdout-filters",
        "--duplicate_stderr_filters"}) {
    std::string hyphened = option;
    std::replace(hyphened.begin(), hyphened.end(), '_', '-');
    CHECK(error({option, "3", "x"}) == hyphened + " is not in this version");
  }
  CHECK(error({"-r", "3", "x"}) == "--redirects is not in this version");
  CHECK(error({"-t3", "x"}) == "--tee is not in this version");
  CHECK(error({"--virtual-local-rank", "x"}) == "--virtual-local-rank is not in this version");
  CHECK(error({"x"}, {{"PET_LOG_DIR", "/logs"}}) == "--log-dir is not in this version");
  // Asking for what happens anyway is no error.
  CHECK(config({"-r", "0", "--tee=0", "--event-log-handler=null", "x"}).workers == 1);
}

TEST_CASE("command line: what happens on a failure, and what is told of it") {
  const LaunchConfig plain = config({"x"});
  CHECK(plain.on_failure == OnFailure::restart);
  CHECK(plain.restart_delay == seconds(5));
  CHECK(plain.signals_to_handle.empty());
  CHECK_FALSE(plain.isolate_pids);
  CHECK(plain.report_file.empty());
  CHECK(plain.events_file.empty());

  const LaunchConfig made = config(
      {"--on-failure=notify", "--restart_delay", "0", "--isolate=pid", "--report=r.json",
       "--events", "e.jsonl", "--signals-to-handle=SIGTERM, usr1", "--legacy-store=2.1", "x"});
  CHECK(made.on_failure == OnFailure::notify);
  CHECK(made.restart_delay == seconds(0));
  CHECK(made.signals_to_handle == std::vector<std::int32_t>{SIGTERM, SIGUSR1});
  CHECK(made.isolate_pids);
  CHECK(made.report_file == "r.json");
  CHECK(made.events_file == "e.jsonl");
  CHECK(made.legacy_store == ddp::rendezvous::StoreDialect::b);

  CHECK(error({"--on-failure=ignore", "x"}) ==
        "--on-failure takes restart or notify, not \"ignore\"");
  CHECK(error({"--isolate=net", "x"}) == "--isolate takes none or pid, not \"net\"");
  CHECK(error({"--signals-to-handle=SIGTERM,SIGNOPE", "x"}) ==
        "--signals-to-handle takes names of signals (SIGTERM,SIGUSR1), not "
        "\"SIGTERM,SIGNOPE\"");
  CHECK(error({"--signals-to-handle=KILL", "x"}) == "--signals-to-handle: KILL can't be handled");
  CHECK(error({"--signals-to-handle=SIGSEGV", "x"}) ==
        "--signals-to-handle: SIGSEGV can't be handled");
  CHECK(error({"--signals-to-handle=CONT", "x"}) == "--signals-to-handle: CONT can't be handled");
  // torchrun's are defaults by environment, ours are not.
  CHECK(config({"x"}, {{"PET_SIGNALS_TO_HANDLE", "SIGUSR2"}}).signals_to_handle ==
        std::vector<std::int32_t>{SIGUSR2});
  CHECK(config({"x"}, {{"PET_ISOLATE", "pid"}}).isolate_pids == false);
}

TEST_CASE("command line: a bare IPv6 endpoint is refused, the bracket form suggested") {
  CHECK(error({"--rdzv-endpoint=::1", "x"}) ==
        "--rdzv-endpoint ::1 can be read in two ways; an IPv6 address goes in brackets: "
        "[::1]:PORT");
}

TEST_CASE("command line: PET_ variables are defaults, the command line wins") {
  const Environment pet = {{"PET_NPROC_PER_NODE", "4"}, {"PET_MAX_RESTARTS", "2"},
                           {"PET_STANDALONE", "1"},     {"PET_MODULE", "0"},
                           {"PET_LOGS_SPECS", "x"},     {"PET_VERBOSE", "1"}};
  CHECK(config({"x"}, pet).workers == 4);
  CHECK(config({"--nproc=3", "x"}, pet).workers == 3);
  CHECK(config({"x"}, pet).max_restarts == 2);
  CHECK(config({"x"}, pet).standalone);
  CHECK(config({"x"}, pet).kind == ProgramKind::executable);
  CHECK_FALSE(config({"x"}, pet).verbose);
  CHECK(error({"x"}, {{"PET_STANDALONE", "yes"}}) == "PET_STANDALONE takes 0 or 1, not \"yes\"");
  CHECK(error({"x"}, {{"PET_MASTER_PORT", "abc"}}) ==
        "--master-port takes a whole number from 0 to 65535, not \"abc\" (PET_MASTER_PORT in the "
        "environment)");
  CHECK(
      error({"x"}, {{"PET_NNODES", ""}}) ==
      "--nnodes takes N or MIN:MAX with 1 <= MIN <= MAX, not \"\" (PET_NNODES in the environment)");
}

TEST_CASE("command line: the grace period has torchrun's variable as well") {
  const Environment inherited = {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}};
  CHECK(config({"x"}, inherited).shutdown_timeout == seconds(9));
  CHECK(config({"--shutdown-timeout=3", "x"}, inherited).shutdown_timeout == seconds(3));
}

TEST_CASE("command line: values keep their bytes") {
  CHECK(config({"--role=[a,b] ${x}", "x"}).role == "[a,b] ${x}");
  CHECK(config({"--role=--", "x"}).role == "--");
  CHECK(config({"--rdzv-id=--help", "x"}).run_id == "--help");
}

TEST_CASE("command line: mistakes are one line that helps") {
  CHECK(error({}) ==
        "no program given; usage: ddplaunch [options] PROGRAM [arguments], see --help");
  CHECK(error({"--nproc", "2"}) ==
        "no program given; usage: ddplaunch [options] PROGRAM [arguments], see --help");
  CHECK(error({"--nproc-per-nod=2", "--nprocs-per-node", "2", "x"}) ==
        "unknown option --nprocs-per-node; did you mean --nproc-per-node?");
  CHECK(error({"--max-restart-s", "x"}) ==
        "unknown option --max-restart-s; did you mean --max-restarts?");
  CHECK(error({""}) == "the program's name is empty");
  CHECK(error({"--node-rank=1\n\x1b[2J", "x"}).find("\"1??[2J\"") != std::string::npos);
}

TEST_CASE("command line: help fits the terminal and names every option once") {
  const std::string help = text({"--nproc", "2", "--help", "--nonsense"});
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 80);
    CHECK((line.empty() || line.back() != ' '));
  }
  for (const char* name :
       {"--nproc-per-node",   "--nnodes",           "--node-rank",
        "--master-addr",      "--master-port",      "--standalone",
        "--max-restarts",     "--rdzv-id",          "--rdzv-conf",
        "--rdzv-backend",     "--rdzv-endpoint",    "--role",
        "--local-addr",       "--no-python",        "--module",
        "--shutdown-timeout", "--monitor-interval", "--start-method",
        "--verbose",          "--version",          "--help",
        "--log-dir",          "--redirects",        "--duplicate-stderr-filters"}) {
    INFO(name);
    CHECK(help.find(name) != std::string::npos);
  }
  CHECK(help.find("Examples:") != std::string::npos);
  CHECK(text({"-h"}) == help);
}

TEST_CASE("command line: version") {
  CHECK(text({"--version"}).rfind("ddplaunch ", 0) == 0);
}

TEST_CASE("command line: --run-path takes whatever Python can run, and wins") {
  for (const char* name : {"sub", "notes"}) {
    const LaunchConfig made = config({"--run-path", "-m", "--no-python", name});
    CHECK(made.kind == ProgramKind::python_script);
    CHECK(made.program == name);
  }
  CHECK(config({"--run_path", "part_$local_rank"}).kind == ProgramKind::python_script);
  // Not left to Python, whose exit code for it asks for another try; never searched in PATH.
  const LaunchConfig missing = config({"--run-path", "nowhere"});
  CHECK(missing.kind == ProgramKind::executable);
  CHECK(missing.program == "./nowhere");
}

TEST_CASE("command line: torch.distributed.launch's local rank") {
  CHECK(config({"x"}).local_rank_option.empty());
  CHECK(config({"--use-env", "x"}).local_rank_option.empty());
  const LaunchConfig made = config({"--pass-local-rank", "x", "a"});
  CHECK(made.local_rank_option == "--local-rank");
  CHECK(made.program == "x");
  CHECK(made.arguments == Words{"a"});
  CHECK(config({"--pass_local_rank=local_rank", "x"}).local_rank_option == "--local_rank");
  CHECK(error({"--pass-local-rank=rank", "x"}) ==
        "--pass-local-rank takes local-rank or local_rank, not \"rank\"");
  CHECK(error({"--pass-local-rank", "--use-env", "x"}) ==
        "--pass-local-rank and --use-env exclude each other");
}

TEST_CASE("command line: ports stay within a range") {
  CHECK(config({"--port-range=4000-4010", "x"}).port_range ==
        ddp::rendezvous::PortRange{Port{4000}, Port{4010}});
  CHECK(config({"--port-range=4000-4010", "x"}).master_port == std::nullopt);
  CHECK(config({"--port-range=4000-4010", "--nnodes=2", "x"}).master_port == Port{4000});
  CHECK(config({"--port-range=4000-4010", "--master-port=4010", "x"}).master_port == Port{4010});
  CHECK(config({"--port-range=7-7", "--rdzv-endpoint=h:7", "x"}).master_port == Port{7});
  CHECK(error({"--port-range=4000-4010", "--master-port=4011", "x"}) ==
        "port 4011 is outside of --port-range 4000-4010");
  for (const char* bad : {"", "4000", "-", "1-", "-1-4", "0-9", "9-8", "1-65536", "a-b", "1-2-3"}) {
    CHECK(error({std::string("--port-range=") + bad, "x"}) ==
          "--port-range takes A-B with 1 <= A <= B <= 65535, not \"" + std::string(bad) + "\"");
  }
}

TEST_CASE("command line: a value that nobody typed is told by its variable") {
  CHECK(error({"--max-restarts=-1", "x"}, {{"PET_MAX_RESTARTS", "x"}}).find("PET_") ==
        std::string::npos);
  CHECK(error({"x"}, {{"PET_MAX_RESTARTS", "x"}}).find("(PET_MAX_RESTARTS in the environment)") !=
        std::string::npos);
}

TEST_CASE("command line: completion only for the shell that it is written for") {
  CHECK(text({"--print-completion", "bash"}).find("complete -F") != std::string::npos);
  CHECK(error({"--print-completion=fish"}) == "--print-completion takes bash, not \"fish\"");
}
