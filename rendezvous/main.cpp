// ddprendezvous: serves ranks and agents from a process of its own.
#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/result.h"
#include "rendezvous/io/listener.h"
#include "rendezvous/io/worker_store.h"

namespace ddp::rendezvous {
namespace {

struct DaemonConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 29400;
  std::string port_file;
  std::string legacy_store = "2.0";
  std::size_t max_connections = 0;  // as many as there can be
  bool plain_store = false;
  bool insecure = false;
};

// The options as they were given: CLI11's own complaints about numbers help nobody.
struct DaemonNumbers {
  std::string port = "29400";
  std::string max_connections = "0";
};

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

Result<void> take_numbers(const DaemonNumbers& numbers, DaemonConfig& config) {
  if (!read_number(numbers.port, config.port)) {
    return Error{"--port: \"" + numbers.port +
                 "\" is no port; give 1 to 65535, or 0 for a free one"};
  }
  if (!read_number(numbers.max_connections, config.max_connections)) {
    return Error{"--max-connections: \"" + numbers.max_connections +
                 "\" is no number of connections; give 1 or more, or 0 for as many as the limit of "
                 "open files allows"};
  }
  return {};
}

int refuse(std::int32_t code, const std::string& why) {
  std::cerr << "ddprendezvous: " << why << '\n';
  return code;
}

// Two descriptors a rank: the usual soft limit of 1024 ends at 500 ranks.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// It would be replaced.
bool is_no_file(const std::string& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
}

// Whoever waits for the file must never read half a number.
Result<void> write_port_file(const std::string& path, Port port) {
  const std::string unfinished = path + ".tmp";
  std::remove(unfinished.c_str());  // somebody's link, or left by one that was killed
  std::FILE* file = std::fopen(unfinished.c_str(), "wxe");
  const bool written = file != nullptr && std::fprintf(file, "%u\n", port.value) > 0;
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (written && closed && std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  return Error{"cannot write the port to " + path + "; give a path in a folder that is writable"};
}

int serve(const DaemonConfig& config) {
  const auto address = resolve_address(config.host);
  if (!address) return refuse(exit_code::kUsage, address.error().message);
  if (!address.value().is_loopback() && !config.insecure) {
    return refuse(exit_code::kUsage,
                  "refusing to listen on " + config.host +
                      ": whoever reaches the port can read and change everything; give "
                      "--insecure if the network is trusted, or a loopback address");
  }
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);  // nobody needs to read the readiness line
  boost::asio::io_context context(1);
  boost::asio::signal_set signals(context, SIGTERM, SIGINT);
  WorkerStoreOptions options;
  options.address = address.value().to_string();
  options.port = Port{config.port};
  options.legacy = config.legacy_store == "2.1" ? StoreDialect::b : StoreDialect::a;
  if (config.max_connections > 0) options.connections = config.max_connections;
  options.on_warning = [](const std::string& text) {
    std::cerr << "ddprendezvous: " << text << std::endl;
  };
  if (is_no_file(config.port_file)) {
    return refuse(exit_code::kUsage,
                  "--port-file: " + config.port_file + " is there already, and it is no file");
  }
  auto store = WorkerStore::open(context, options);
  if (!store) return refuse(exit_code::kLauncherFailed, store.error().message);
  const Port port = store.value()->endpoint().port;
  if (!config.port_file.empty()) {
    if (const auto written = write_port_file(config.port_file, port); !written) {
      return refuse(exit_code::kLauncherFailed, written.error().message);
    }
  }
  std::cout << "ddprendezvous: serving a TCPStore on " << config.host << ' ' << port.value
            << std::endl;
  signals.async_wait([&context](const auto&, int) { context.stop(); });
  context.run();
  return 0;
}

}  // namespace
}  // namespace ddp::rendezvous

int main(int argc, char** argv) {
  ddp::rendezvous::DaemonConfig config;
  ddp::rendezvous::DaemonNumbers numbers;
  CLI::App app{
      "Serves a plain TCPStore (PyTorch's protocol) to any number of clients.\n"
      "This version has no coordinator for jobs yet: every client shares one map."};
  app.name("ddprendezvous");
  app.add_option("--host", config.host, "Address or name to listen on")->capture_default_str();
  app.add_option("--port", numbers.port, "Port to listen on, 0 for a free one")
      ->capture_default_str();
  app.add_option("--port-file", config.port_file, "Write the port to this file once it is open");
  app.add_option("--legacy-store", config.legacy_store,
                 "What clients of old PyTorch speak: 2.0 (1.x and 2.0) or 2.1")
      ->check(CLI::IsMember({"2.0", "2.1"}))
      ->capture_default_str();
  app.add_option("--max-connections", numbers.max_connections,
                 "How many clients at once; 0: as many as the limit of open files allows. Above "
                 "it, connections that have never asked for anything are closed, oldest first")
      ->capture_default_str();
  app.add_flag("--plain-store", config.plain_store,
               "Serve the plain TCPStore (the only service so far, on with or without this)");
  app.add_flag("--insecure", config.insecure, "Allow an address that other hosts can reach");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ddprendezvous: " << error.what() << "; see --help\n";
    return ddp::rendezvous::exit_code::kUsage;
  }
  if (const auto taken = ddp::rendezvous::take_numbers(numbers, config); !taken) {
    return ddp::rendezvous::refuse(ddp::rendezvous::exit_code::kUsage, taken.error().message);
  }
  try {
    return ddp::rendezvous::serve(config);
  } catch (const std::bad_alloc&) {
    return ddp::rendezvous::refuse(ddp::rendezvous::exit_code::kLauncherFailed,
                                   "out of memory; give the process more (ulimit -v, the limit of "
                                   "the container): a full store needs somewhat over 1 GiB");
  }
}
