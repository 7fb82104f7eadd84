#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/bench/store_load/measures.h"

namespace ddp::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kValueSize = 64;

struct Client {
  Socket socket;
  Exchange exchange;
  std::size_t left = 0;
};

Exchange exchange_of(const Requests& requests, const std::string& operation,
                     const std::string& key) {
  if (operation == "set") return requests.set(key, std::string(kValueSize, 'x'));
  if (operation == "add") return requests.add(key, 1);
  if (operation == "get") return requests.get(key, kValueSize);
  give_up("no such operation: " + operation);
}

Client make_client(const Target& target, const std::string& operation, const std::string& key) {
  const Requests requests(target.dialect);
  Client client;
  client.exchange = exchange_of(requests, operation, key);
  client.socket = open_connection(target, client.exchange, EchoRole::answer);
  if (operation == "get" && target.dialect != Dialect::echo) {
    send_all(client.socket, requests.set_only(key, std::string(kValueSize, 'x')));
  }
  return client;
}

void ask(Client& client) {
  client.left = client.exchange.reply_size;
  send_all(client.socket, client.exchange.request);
}

}  // namespace

void measure_requests(const Target& target, const std::string& operation, int clients,
                      double seconds) {
  const std::string keys = "/bench/" + std::to_string(getpid()) + "/";
  std::vector<Client> all;
  Poller poller;
  for (int i = 0; i < clients; ++i) {
    all.push_back(make_client(target, operation, keys + std::to_string(i)));
    poller.add_readable(all.back().socket, static_cast<std::uint64_t>(i));
  }
  for (Client& client : all) ask(client);
  long done = 0;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(seconds);
  auto now = begin;
  for (; now < end; now = Clock::now()) {
    int count = 0;
    const std::uint64_t* const ready = poller.wait(count);
    for (int i = 0; i < count; ++i) {
      Client& client = all[ready[i]];
      client.left -= receive_some(client.socket, client.left);
      if (client.left > 0) continue;
      ++done;
      ask(client);
    }
  }
  std::printf("{\"requests\": %ld, \"seconds\": %.6f}\n", done,
              std::chrono::duration<double>(now - begin).count());
}

}  // namespace ddp::bench
