// Starting, watching and killing single processes, below the agent.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "launcher/io/children.h"
#include "launcher/io/spawner.h"
#include "launcher/io/strangers.h"
#include "launcher/io/worker_output.h"
#include "launcher/io/worker_process.h"

namespace {

using namespace ddp::launcher;
using std::chrono::seconds;

constexpr const char* kWorker = SCRIPTED_WORKER;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ddp_test_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + '/' + name; }

  std::string write(const std::string& name, const std::string& text, mode_t mode) const {
    std::string path = *this / name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

 private:
  std::string path_;
};

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Starts commands and waits for their ends on a loop.
struct Stage {
  boost::asio::io_context loop{1};
  Spawner spawner{-1, {}};
  std::unique_ptr<WorkerProcess> worker;
  std::optional<ExitStatus> ended;

  void start(const std::vector<std::string>& arguments, const Environment& environment = {}) {
    auto started = spawner.start({arguments, environment});
    REQUIRE(std::holds_alternative<SpawnedProcess>(started));
    worker = std::make_unique<WorkerProcess>(loop, std::get<SpawnedProcess>(std::move(started)),
                                             [this](const ExitStatus& status) { ended = status; });
  }
  ExitStatus wait() {
    while (!ended && loop.run_one_for(seconds(20)) > 0) {
    }
    REQUIRE(ended);
    return *ended;
  }
  SpawnRefusal refusal(const std::string& program, const Environment& environment = {}) {
    auto started = spawner.start({{program}, environment});
    REQUIRE(std::holds_alternative<SpawnRefusal>(started));
    return std::get<SpawnRefusal>(started);
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

pid_t reported_pid(const std::string& path) {
  std::istringstream line(read_file(path));
  std::string word;
  pid_t pid = 0;
  line >> word >> pid;
  return pid;
}

// Gone, or dead and not reaped.
bool is_dead(pid_t pid) {
  const char state = look_at(pid).state;
  return state == '?' || state == 'Z';
}

}  // namespace

TEST_CASE("spawner: exit codes and signals come back as they were") {
  Stage stage;
  SECTION("0") {
    stage.start({kWorker, "m", "exit=0"});
    CHECK(stage.wait().exit_code == 0);
  }
  SECTION("255") {
    stage.start({kWorker, "m", "exit=255"});
    CHECK(stage.wait().exit_code == 255);
  }
  SECTION("a signal") {
    stage.start({kWorker, "m", "raise=9"});
    CHECK(stage.wait().exit_code == -1);
    CHECK(stage.ended->signal == SIGKILL);
    CHECK_FALSE(stage.ended->core_dumped);
  }
  CHECK_FALSE(has_children());
}

TEST_CASE("spawner: a program that can't be started is told apart as a shell does it") {
  const TempFolder folder;
  Stage stage;
  const Environment path{{"PATH", folder / "" + ":/usr/bin"}};

  CHECK(stage.refusal("ddp-no-such-program", path).exit_code == 127);
  CHECK(stage.refusal("", path).exit_code == 127);
  CHECK(stage.refusal(folder / "missing").exit_code == 127);
  CHECK(stage.refusal(folder / "").exit_code == 126);

  const std::string plain = folder.write("plain", "echo\n", 0755);
  CHECK(stage.refusal(plain).exit_code == 126);
  CHECK(contains(stage.refusal(plain).reason, "#!"));
  CHECK(stage.refusal("plain", path).exit_code == 126);

  const std::string bad = folder.write("bad", "#!/no/such/interpreter\n", 0755);
  CHECK(stage.refusal(bad).exit_code == 126);
  CHECK(contains(stage.refusal(bad).reason, "interpreter"));

  const std::string closed = folder.write("closed", "#!/bin/sh\n", 0644);
  CHECK(stage.refusal(closed).exit_code == 126);
  CHECK(contains(stage.refusal(closed).reason, "chmod +x"));
  CHECK_FALSE(has_children());
}

TEST_CASE("spawner: PATH is the worker's, and one bad candidate doesn't hide the next") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  folder.write("a/tool", "#!/bin/sh\nexit 1\n", 0644);
  folder.write("b/tool", "#!/bin/sh\nexit 5\n", 0755);
  Stage stage;
  stage.start({"tool"}, {{"PATH", folder / "a" + ":" + folder / "b"}});
  CHECK(stage.wait().exit_code == 5);
}

TEST_CASE("spawner: a worker leads its session, dies with us and has default signals") {
  const TempFolder folder;
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  Stage stage;
  const std::string file = folder / "report";
  stage.start({kWorker, "m", "session=" + file, "wait-for=" + folder / "go"}, {{"RANK", "4"}});
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  ::signal(SIGPIPE, old);

  const std::string pid = std::to_string(stage.worker->pid());
  const std::string status = read_file("/proc/" + pid + "/status");
  CHECK(contains(status, "SigBlk:\t0000000000000000"));
  CHECK(contains(status, "SigIgn:\t0000000000000000"));
  std::ofstream{folder / "go"};
  CHECK(stage.wait().exit_code == 0);
  CHECK(read_file(file) == "session 4 " + pid + " " + pid + " 9\n");
}

TEST_CASE("spawner: a worker gets 0, 1, 2 and the control page, whatever we hold") {
  const TempFolder folder;
  const std::string file = folder / "report";
  std::vector<int> ours;
  for (int i = 0; i < 300; ++i) ours.push_back(::open("/dev/null", O_RDONLY));  // not CLOEXEC
  const int page = GENERATE_COPY(-1, 3, ours[5], ours[299]);
  if (page == 3) REQUIRE(::dup2(ours[0], 3) == 3);
  // stdout, stderr: -1 for inherited
  const auto [out, err] = GENERATE_COPY(std::pair(-1, -1), std::pair(ours[7], ours[7]),
                                        std::pair(ours[290], -1), std::pair(ours[8], ours[291]));

  boost::asio::io_context loop(1);
  Spawner spawner(page, {});
  const auto start = [&](int code) {
    auto started =
        spawner.start({{kWorker, "m", "descriptors=" + file, "exit=" + std::to_string(code)},
                       {{"RANK", "0"}},
                       {},
                       {out, err}});
    REQUIRE(std::holds_alternative<SpawnedProcess>(started));
    int status = 0;
    REQUIRE(::waitpid(std::get<SpawnedProcess>(started).pid, &status, 0) > 0);
    CHECK(WEXITSTATUS(status) == code);
  };
  start(4);
  start(5);
  const std::string expected = page < 0 ? "descriptors 0 0 1 2\n" : "descriptors 0 0 1 2 3\n";
  CHECK(read_file(file) == expected + expected);
  for (const int fd : ours) CHECK(::fcntl(fd, F_GETFD) == 0);  // ours are untouched
  for (const int fd : ours) ::close(fd);
}

TEST_CASE("spawner: a worker's stdout and stderr go where they are told") {
  const TempFolder folder;
  const int out = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int err = ::open((folder / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  Spawner spawner(-1, {});
  const auto start = [&](const std::string& word, StandardStreams streams) {
    auto started = spawner.start({{"/bin/sh", "-c", "echo " + word + "; echo e" + word + " >&2"},
                                  {{"PATH", "/bin:/usr/bin"}},
                                  {},
                                  streams});
    REQUIRE(std::holds_alternative<SpawnedProcess>(started));
    REQUIRE(::waitpid(std::get<SpawnedProcess>(started).pid, nullptr, 0) > 0);
  };
  start("apart", {out, err});
  start("joined", {err, err});
  start("swapped", {err, out});
  CHECK(read_file(folder / "out") == "apart\neswapped\n");
  CHECK(read_file(folder / "err") == "eapart\njoined\nejoined\nswapped\n");
  ::close(out);
  ::close(err);
}

TEST_CASE("worker output: the end of a worker comes with the last lines of its stderr") {
  const StreamRoute out = GENERATE(StreamRoute::inherited, StreamRoute::pipe);
  const bool joined = out == StreamRoute::pipe;
  boost::asio::io_context loop(1);
  Console console(loop);  // what the worker says appears among what this test says
  WorkerOutput output(loop, console, {out, StreamRoute::pipe, joined, false}, 2);
  Spawner spawner(-1, {});
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  std::map<std::size_t, std::string> last;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string script = "sleep 100 & echo out; echo 10% >&2; printf 'err " +
                               std::to_string(i) + "' >&2; kill -9 $$";
    auto started =
        spawner.start({{"/bin/sh", "-c", script}, {{"PATH", "/bin:/usr/bin"}}, {}, output.open(i)});
    output.started();
    REQUIRE(std::holds_alternative<SpawnedProcess>(started));
    workers.push_back(std::make_unique<WorkerProcess>(
        loop, std::get<SpawnedProcess>(std::move(started)), [&, i](const ExitStatus&) {
          output.ended(i);
          last[i] = output.last_lines(i);
        }));
  }
  while (last.size() < 2 && loop.run_one_for(seconds(20)) > 0) {
  }
  const std::string expected = joined ? "out\n10%\nerr " : "10%\nerr ";
  CHECK(last[0] == expected + "0");
  CHECK(last[1] == expected + "1");
  CHECK(output.trouble().empty());
}

TEST_CASE("spawner: workers get the original limit of open files back") {
  const TempFolder folder;
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = 77;
  Spawner spawner(-1, {limit, std::nullopt, {}});
  auto started = spawner.start(
      {{"sh", "-c", "ulimit -S -n > " + folder / "limit"}, {{"PATH", "/usr/bin:/bin"}}});
  REQUIRE(std::holds_alternative<SpawnedProcess>(started));
  REQUIRE(::waitpid(std::get<SpawnedProcess>(started).pid, nullptr, 0) > 0);
  CHECK(read_file(folder / "limit") == "77\n");
}

TEST_CASE("spawner: what was ignored or blocked before we changed it is so for a worker") {
  SpawnSettings settings;
  sigaddset(&settings.signals.ignored, SIGHUP);
  sigaddset(&settings.signals.ignored, SIGCHLD);
  sigaddset(&settings.signals.blocked, SIGUSR2);
  const auto hang_up = ::signal(SIGHUP, SIG_IGN);
  const auto pipe = ::signal(SIGPIPE, SIG_IGN);
  Spawner spawner(-1, settings);
  const TempFolder folder;
  const int out = ::open((folder / "status").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  auto started =
      spawner.start({{"cat", "/proc/self/status"}, {{"PATH", "/usr/bin:/bin"}}, {}, {out, -1}});
  ::close(out);
  ::signal(SIGHUP, hang_up);
  ::signal(SIGPIPE, pipe);
  REQUIRE(std::holds_alternative<SpawnedProcess>(started));
  REQUIRE(::waitpid(std::get<SpawnedProcess>(started).pid, nullptr, 0) > 0);
  const std::string status = read_file(folder / "status");
  CHECK(contains(status, "SigIgn:\t0000000000010001"));
  CHECK(contains(status, "SigBlk:\t0000000000000800"));
}

TEST_CASE("worker process: what is left in its group is told to end as it was itself") {
  const TempFolder folder;
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  Stage stage;
  const std::string file = folder / "child";
  const bool told = GENERATE(true, false);
  stage.start({"sh", "-c",
               "sleep 1000 & echo child $! > " + file + ".new; mv " + file + ".new " + file +
                   (told ? "; while :; do sleep 1000 & wait; done" : "; exit 3")},
              {{"PATH", "/usr/bin:/bin"}});
  while (!std::filesystem::exists(file)) ::usleep(1000);
  if (told) stage.worker->tell_to_end(SIGTERM);
  CHECK(stage.wait().signal == (told ? SIGTERM : 0));
  const pid_t child = reported_pid(file);
  REQUIRE(child > 0);
  int status = 0;
  if (!told) {
    CHECK(::waitpid(child, &status, WNOHANG) == 0);  // it has come to us, and lives
    ::kill(child, SIGKILL);
  }
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == (told ? SIGTERM : SIGKILL));
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST_CASE("strangers: those of a spared session are told to end and waited for") {
  const TempFolder folder;
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  Stage stage;
  // In a group of its own, deaf to SIGINT, busy for a moment after SIGTERM; and one that hears
  // none.
  const std::string script =
      "set -m; trap '' INT; (trap 'while ! [ -e go ]; do sleep 0.01; done; : > saved; exit' TERM; "
      ": > ready; while :; do sleep 0.01; done) & "
      "(trap '' TERM; : > deaf; while :; do sleep 0.01; done) & "
      "while ! [ -e ready -a -e deaf ]; do sleep 0.01; done";
  stage.start({"bash", "-c", "cd " + folder / "" + "; " + script}, {{"PATH", "/usr/bin:/bin"}});
  const pid_t session = stage.worker->pid();
  CHECK(stage.wait().exit_code == 0);
  Strangers strangers(stage.loop, {[](pid_t) { return false; }, [](const std::string&) {}});
  bool gone = false;
  strangers.sweep({session}, SIGINT, [&] { gone = true; });
  CHECK(has_children());
  std::ofstream{folder / "go"};
  stage.loop.restart();
  while (!std::filesystem::exists(folder / "saved")) stage.loop.run_one_for(seconds(1));
  CHECK_FALSE(gone);  // for there is the deaf one
  strangers.spare_nobody();
  stage.loop.restart();  // it has run out of work while nobody ended
  while (!gone && stage.loop.run_one_for(seconds(20)) > 0) {
  }
  CHECK(gone);
  CHECK_FALSE(has_children());
}

TEST_CASE("strangers: whoever leaves more dead than are reaped in a turn has no more time for it") {
  constexpr int kDead = 50;
  std::vector<pid_t> dead;
  for (int i = 0; i < kDead; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    dead.push_back(pid);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  }
  boost::asio::io_context loop(1);
  Strangers strangers(loop, {[](pid_t) { return false; }, [](const std::string&) {}},
                      {std::chrono::milliseconds(0), 1});
  bool some_left = false;
  bool gone = false;
  strangers.sweep({}, 0, [&] {
    gone = true;
    some_left = has_children();
  });
  while (!gone && loop.run_one_for(seconds(20)) > 0) {
  }
  CHECK(some_left);
  for (const pid_t pid : dead) ::waitpid(pid, nullptr, 0);
}

TEST_CASE("strangers: daemons that a worker left are killed and reaped, however well they hide") {
  const TempFolder folder;
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  Stage stage;
  const std::string report = folder / "report";
  ::mkfifo(report.c_str(), 0600);
  const int fifo = ::open(report.c_str(), O_RDWR | O_CLOEXEC);
  stage.start({kWorker, "m", "daemon=" + report, "daemon=" + report, "exit=0"});
  CHECK(stage.wait().exit_code == 0);
  std::array<char, 256> text{};
  std::vector<pid_t> daemons;
  for (std::string lines; daemons.size() < 2;) {
    const ssize_t length = ::read(fifo, text.data(), text.size());
    REQUIRE(length > 0);
    lines.append(text.data(), static_cast<std::size_t>(length));
    daemons.clear();
    std::istringstream in(lines);
    for (std::string word, pid; in >> word >> pid;) daemons.push_back(std::stoi(pid));
  }
  for (const pid_t pid : daemons) REQUIRE_FALSE(is_dead(pid));

  std::vector<std::string> warnings;
  Strangers strangers(stage.loop,
                      {[](pid_t) { return false; },
                       [&](const std::string& warning) { warnings.push_back(warning); }});
  bool gone = false;
  strangers.sweep({}, 0, [&] { gone = true; });
  stage.loop.restart();
  while (!gone && stage.loop.run_one_for(seconds(20)) > 0) {
  }
  CHECK(gone);
  CHECK(warnings.empty());
  for (const pid_t pid : daemons) CHECK(look_at(pid).state == '?');
  CHECK_FALSE(has_children());
  ::close(fifo);
}

TEST_CASE("strangers: a worker is never reaped or killed as one") {
  const TempFolder folder;
  Stage stage;
  stage.start({kWorker, "m", "exit=7"});
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(stage.worker->pid()), &info, WEXITED | WNOWAIT) == 0);
  Strangers strangers(stage.loop, {[&](pid_t pid) { return pid == stage.worker->pid(); },
                                   [](const std::string&) {}});
  strangers.child_ended();
  CHECK(stage.wait().exit_code == 7);
}

TEST_CASE("children: the dead lead to their group, which is not ours and not a spared one's") {
  const auto start = [](pid_t group, bool ends) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setpgid(0, group);
      if (ends) ::_exit(0);
      for (;;) ::pause();
    }
    REQUIRE(pid > 0);
    ::setpgid(pid, group);  // whoever of the two comes first
    return pid;
  };
  const pid_t left = start(0, false);
  const pid_t spared = start(0, false);
  for (const pid_t group : {left, spared, ::getpgrp()}) {
    const pid_t ended = start(group, true);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT) == 0);
    GroupKiller killer;
    killer.kill_group_of(ended, {&spared, 1});  // if it hit our group, this test would end here
    CHECK(reap(ended));
  }
  int status = 0;
  REQUIRE(::waitpid(left, &status, 0) == left);
  CHECK(WIFSIGNALED(status));
  CHECK(look_at(spared).state != 'Z');
  CHECK(::waitpid(spared, nullptr, WNOHANG) == 0);
  ::kill(spared, SIGKILL);
  ::waitpid(spared, nullptr, 0);
}

TEST_CASE("children: all are listed, more than one buffer holds") {
  constexpr std::size_t kMany = 700;
  std::vector<pid_t> started;
  for (std::size_t i = 0; i < kMany; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    REQUIRE(pid > 0);
    started.push_back(pid);
  }
  ChildList list;
  REQUIRE(list.read());
  std::vector<pid_t> seen(list.pids().begin(), list.pids().end());
  std::sort(seen.begin(), seen.end());
  std::sort(started.begin(), started.end());
  CHECK(seen == started);
  for (const pid_t pid : started) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  REQUIRE(list.read());
  CHECK(list.pids().empty());
}
