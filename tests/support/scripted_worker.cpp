// A worker that does what its arguments say, one after the other, for tests of whoever starts it.
//
//   scripted_worker MARK ACTION…
//
// MARK stays in the arguments of every process that it starts, so that survivors can be found even
// if they have left their session, their parents and their environment. REPORT is a FIFO or file
// that lines are appended to.
//
// clang-format off
//   report=REPORT:WORD            "WORD <RANK> <pid>"
//   descriptors=REPORT            "descriptors <RANK> 0 1 2 …"
//   session=REPORT                "session <RANK> <pid> <sid> <parent death signal>"
//   environment=FILE              writes it, NUL-separated
//   error-file=JSON               into the file that TORCHELASTIC_ERROR_FILE names
//   print=TEXT, complain=TEXT     to stdout, to stderr
//   close-stdio, close=DESCRIPTOR
//   ignore=SIGNAL                 by number, as all signals
//   exit-on=SIGNAL:CODE           when that signal comes
//   report-on=SIGNAL:REPORT:WORD  likewise
//   daemon=REPORT                 leaves a process that is hard to find: "daemon<RANK> <pid>"
//   hop=REPORT                    leaves a process that changes its pid all the time: "hop <RANK> <pid>"
//   hold=FIFO, let-go             a connection to who waits with until-closed=FIFO
//   sleep-at-most=MS              a random time
//   linger=MS                     takes that long, whatever comes
//   exit=CODE, raise=SIGNAL
//   exit-in-restart=COUNT:CODE    if that is the restart count
//   wait, wait-for=FILE           for ever, or until it is there
//   only-rank=RANK                else skip the next action
// clang-format on
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

std::string mark;
int held = -1;
std::map<int, int> exit_codes;                                    // by signal
std::map<int, std::pair<std::string, std::string>> signal_words;  // by signal: report, word

[[noreturn]] void die(const std::string& what) {
  std::perror(what.c_str());
  std::_Exit(99);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void append(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    die(path);
  }
  ::close(fd);
}

void report(const std::string& path, const std::string& word) {
  append(path, word + " " + variable("RANK") + " " + std::to_string(::getpid()) + "\n");
}

std::pair<std::string, std::string> cut(const std::string& text, char at) {
  const std::size_t place = text.find(at);
  if (place == std::string::npos) return {text, ""};
  return {text.substr(0, place), text.substr(place + 1)};
}

void on_signal(int signal) {
  if (const auto word = signal_words.find(signal); word != signal_words.end()) {
    report(word->second.first, word->second.second);
  }
  if (const auto code = exit_codes.find(signal); code != exit_codes.end()) std::_Exit(code->second);
}

void catch_signal(int signal) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(signal, &action, nullptr);
}

void write_environment(const std::string& path) {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) text += std::string(*entry) + '\0';
  append(path, text);
}

void report_descriptors(const std::string& path) {
  DIR* const folder = ::opendir("/proc/self/fd");
  std::vector<int> open;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != ::dirfd(folder)) {
      open.push_back(std::atoi(entry->d_name));
    }
  }
  ::closedir(folder);
  std::sort(open.begin(), open.end());
  std::string text = "descriptors " + variable("RANK");
  for (const int fd : open) text += " " + std::to_string(fd);
  append(path, text + "\n");
}

void report_session(const std::string& path) {
  int death_signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &death_signal);
  append(path, "session " + variable("RANK") + " " + std::to_string(::getpid()) + " " +
                   std::to_string(::getsid(0)) + " " + std::to_string(death_signal) + "\n");
}

// Everything that makes a process hard to find: its own session, no living parent of ours, an empty
// environment, deaf to polite signals. Returns when it has reported itself as "daemon".
void start_daemon(const std::string& report_to) {
  const std::string rank = variable("RANK");
  const pid_t child = ::fork();
  if (child < 0) die("fork");
  if (child > 0) {
    ::waitpid(child, nullptr, 0);
    return;
  }
  ::setsid();
  int ready[2];
  if (::pipe(ready) != 0) die("pipe");
  if (::fork() != 0) {
    char byte = 0;
    ::close(ready[1]);
    std::_Exit(::read(ready[0], &byte, 1) < 0 ? 99 : 0);
  }
  ::close(ready[0]);
  const std::string word = "report=" + report_to + ":daemon" + rank;
  // Only then does the first process return.
  const std::string reported = "close=" + std::to_string(ready[1]);
  const char* arguments[] = {"scripted_worker", mark.c_str(), "ignore=15",
                             "ignore=1",        "ignore=2",   word.c_str(),
                             reported.c_str(),  "wait",       nullptr};
  const char* environment[] = {nullptr};
  ::execve("/proc/self/exe", const_cast<char**>(arguments), const_cast<char**>(environment));
  die("execve");
}

// Forks and leaves, for ever: whoever looks for it finds a pid that is dead already.
void start_hopping(const std::string& report_to) {
  if (::fork() != 0) return;
  ::setsid();
  report(report_to, "hop");
  for (;;) {
    if (::fork() != 0) std::_Exit(0);
    ::usleep(100);
  }
}

void wait_for(const std::string& path) {
  while (::access(path.c_str(), F_OK) != 0) ::usleep(2000);
}

// As a collective that is broken by its peer.
void wait_until_closed(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  while (::read(fd, &byte, 1) > 0) {
  }
}

using Action = std::function<void(const std::string&)>;

std::map<std::string, Action> actions() {
  return {
      {"report", [](const std::string& v) { report(cut(v, ':').first, cut(v, ':').second); }},
      {"environment", write_environment},
      {"descriptors", report_descriptors},
      {"session", report_session},
      {"close", [](const std::string& v) { ::close(std::stoi(v)); }},
      {"close-stdio", [](const std::string&) { ::close(0), ::close(1), ::close(2); }},
      {"ignore", [](const std::string& v) { ::signal(std::stoi(v), SIG_IGN); }},
      {"exit-on",
       [](const std::string& v) {
         exit_codes[std::stoi(v)] = std::stoi(cut(v, ':').second);
         catch_signal(std::stoi(v));
       }},
      {"report-on",
       [](const std::string& v) {
         signal_words[std::stoi(v)] = cut(cut(v, ':').second, ':');
         catch_signal(std::stoi(v));
       }},
      {"daemon", start_daemon},
      {"hop", start_hopping},
      {"exit", [](const std::string& v) { std::_Exit(std::stoi(v)); }},
      {"raise",
       [](const std::string& v) {
         ::signal(std::stoi(v), SIG_DFL);  // a sanitizer would make an exit of it
         ::raise(std::stoi(v));
       }},
      {"wait",
       [](const std::string&) {
         for (;;) ::pause();
       }},
      {"wait-for", wait_for},
      {"sleep-at-most",
       [](const std::string& v) {
         std::random_device random;
         ::usleep(random() % static_cast<unsigned>(1000 * std::stoi(v) + 1));
       }},
      {"exit-in-restart",
       [](const std::string& v) {
         if (variable("TORCHELASTIC_RESTART_COUNT") == cut(v, ':').first) {
           std::_Exit(std::stoi(cut(v, ':').second));
         }
       }},
      {"error-file", [](const std::string& v) { append(variable("TORCHELASTIC_ERROR_FILE"), v); }},
      {"complain",
       [](const std::string& v) {
         const std::string line = v + "\n";
         if (::write(2, line.data(), line.size()) < 0) die("stderr");
       }},
      {"hold",
       [](const std::string& v) {
         held = ::open(v.c_str(), O_WRONLY | O_CLOEXEC);
         if (held < 0) die(v);
       }},
      {"let-go", [](const std::string&) { ::close(held); }},
      {"until-closed", wait_until_closed},
      {"linger",
       [](const std::string& v) { ::usleep(1000U * static_cast<unsigned>(std::stoi(v))); }},
      {"print",
       [](const std::string& v) {
         std::puts(v.c_str());
         std::fflush(stdout);
       }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 99;
  mark = argv[1];
  const std::map<std::string, Action> known = actions();
  for (int i = 2; i < argc; ++i) {
    const auto [name, value] = cut(argv[i], '=');
    if (name == "only-rank") {
      if (value != variable("RANK")) ++i;
      continue;
    }
    const auto action = known.find(name);
    if (action == known.end()) {
      std::fprintf(stderr, "scripted_worker: no such action: %s\n", name.c_str());
      return 98;
    }
    action->second(value);
  }
  return 0;
}
