// ddplaunch: starts and watches the workers of one node.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "launcher/core/command_line.h"
#include "launcher/core/dry_run.h"
#include "launcher/core/failure_text.h"
#include "launcher/io/agent_runner.h"
#include "launcher/io/event_file.h"
#include "launcher/io/guardian.h"
#include "launcher/io/host_probe.h"
#include "launcher/io/report_file.h"

namespace {

using namespace ddp::launcher;
namespace exit_code = ddp::rendezvous::exit_code;

Environment read_environment(char** entries) {
  Environment environment;
  for (; *entries != nullptr; ++entries) {
    const std::string entry = *entries;
    const std::size_t equals = entry.find('=', 1);
    if (equals == std::string::npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string random_run_id() {
  std::random_device device;
  std::string id;
  for (int digit = 0; digit < 16; ++digit) id += "0123456789abcdef"[device() & 15];
  return id;
}

HostFacts look_at_host(const Environment& environment) {
  HostFacts host;
  host.cpus = allowed_cpus();
  host.count_gpus = [&environment] { return visible_gpus(environment); };
  host.is_file = is_file;
  host.is_executable_file = [](const std::string& path) {
    return is_file(path) && ::access(path.c_str(), X_OK) == 0;
  };
  host.exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  host.random_run_id = random_run_id();
  return host;
}

// The library's own text ends in its category and number, which help nobody.
std::string cannot_go_on(const std::error_code& code) {
  std::string text = "cannot go on: " + code.message();
  if (code == std::errc::too_many_files_open) text += " (raise the limit: ulimit -n)";
  if (code == std::errc::resource_unavailable_try_again) {
    text += " (see ulimit -u and the process limit of the container)";
  }
  if (code == std::errc::file_too_large) text += " (raise the limit of file sizes: ulimit -f)";
  return text;
}

bool same_place(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || std::filesystem::weakly_canonical(a, ignored) ==
                       std::filesystem::weakly_canonical(b, ignored);
}

int refuse(int code, const std::string& reason) {
  std::cerr << "ddplaunch: " + printable(reason) + "\n";
  return code;
}

int show(const std::string& text) {
  std::cout << text << std::flush;
  return std::cout ? 0 : refuse(exit_code::kLauncherFailed, "cannot write to stdout");
}

int launch(int argc, char** argv, Guarded guarded) {
  const Environment environment = read_environment(environ);
  CommandLine command =
      parse_command_line({argv + 1, argv + argc}, environment, look_at_host(environment));
  if (const auto* text = std::get_if<ShowText>(&command)) {
    return show(text->text);
  }
  if (const auto* plan = std::get_if<ShowPlan>(&command)) {
    return show(describe_plan(plan->config, plan->sources, environment));
  }
  if (const auto* error = std::get_if<UsageError>(&command)) {
    return refuse(exit_code::kUsage, error->message);
  }
  if (const auto missing = missing_kernel_support()) {
    return refuse(exit_code::kLauncherFailed, *missing);
  }
  const auto& config = std::get<LaunchConfig>(command);
  if (!config.report_file.empty() && same_place(config.report_file, config.events_file)) {
    return refuse(exit_code::kUsage, "--report and --events name the same file");
  }
  if (!config.report_file.empty()) {
    if (const auto objection = objection_to_report(config.report_file)) {
      return refuse(exit_code::kUsage, "--report: " + *objection);
    }
  }
  std::optional<UniqueFd> events;
  if (!config.events_file.empty()) {
    auto opened = EventFile::open(config.events_file);
    if (const auto* reason = std::get_if<std::string>(&opened)) {
      return refuse(exit_code::kUsage, "--events: " + *reason);
    }
    events = std::get<UniqueFd>(std::move(opened));
  }
  AgentRunner runner(config, environment, std::move(guarded), std::move(events));
  return runner.run();
}

}  // namespace

int main(int argc, char** argv) {
  Guarded guarded = fork_agent();  // Before all else: see there.
  // Over the limit of file sizes a call shall fail and be explained; workers get what was found.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return launch(argc, argv, std::move(guarded));
  } catch (const boost::system::system_error& error) {
    return refuse(exit_code::kLauncherFailed, cannot_go_on(error.code()));
  } catch (const std::system_error& error) {
    return refuse(exit_code::kLauncherFailed, cannot_go_on(error.code()));
  } catch (const std::bad_alloc&) {
    return refuse(
        exit_code::kLauncherFailed,
        "cannot go on: out of memory (raise ulimit -v or the memory limit of the "
        "container, or start fewer workers; the store that they share holds up to 1 GiB)");
  } catch (const std::exception& error) {
    return refuse(exit_code::kLauncherFailed, error.what());
  }
}
