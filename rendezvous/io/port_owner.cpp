#include "rendezvous/io/port_owner.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace ddp::rendezvous {
namespace {

namespace fs = std::filesystem;
namespace ip = boost::asio::ip;

constexpr std::string_view kListening = "0A";

// As the kernel's tables write an address: 32-bit words in this host's order.
template <typename Bytes>
std::string words_of(const Bytes& bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08X", word);
    text += digits.data();
  }
  return text;
}

// How sockets that stand in the way of one at that address may be written.
std::set<std::string> addresses_in_the_way(const ip::address& address) {
  std::set<std::string> texts{words_of(ip::address_v6::any().to_bytes())};
  if (address.is_v6()) texts.insert(words_of(address.to_v6().to_bytes()));
  if (address.is_v4()) {
    texts.insert(words_of(ip::address_v4::any().to_bytes()));
    texts.insert(words_of(address.to_v4().to_bytes()));
    texts.insert(words_of(ip::make_address_v6(ip::v4_mapped, address.to_v4()).to_bytes()));
  }
  return texts;
}

struct Sockets {
  std::set<std::string> listening;  // by inode
  std::set<std::string> others;
};

void look_into(const char* table, const ip::tcp::endpoint& at, Sockets& sockets) {
  const std::set<std::string> wanted = addresses_in_the_way(at.address());
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::array<std::string, 10> column;
    for (std::string& word : column) words >> word;
    const auto& [slot, local, remote, state, queues, timer, retries, user, timeout, inode] = column;
    const std::size_t colon = local.find(':');
    if (colon == std::string::npos || inode.empty() || inode == "0") continue;
    if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) != at.port()) continue;
    if (!at.address().is_unspecified() && wanted.count(local.substr(0, colon)) == 0) continue;
    (state == kListening ? sockets.listening : sockets.others).insert("socket:[" + inode + "]");
  }
}

bool holds_one_of(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  fs::directory_iterator descriptor(process / "fd", error);
  for (; !error && descriptor != fs::directory_iterator(); descriptor.increment(error)) {
    std::error_code gone;
    if (sockets.count(fs::read_symlink(descriptor->path(), gone).string()) > 0) return true;
  }
  return false;
}

std::string name_of(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "?" : name;
}

}  // namespace

std::optional<std::string> port_owner(const ip::tcp::endpoint& at) {
  Sockets sockets;
  look_into("/proc/net/tcp", at, sockets);
  look_into("/proc/net/tcp6", at, sockets);
  const auto& wanted = sockets.listening.empty() ? sockets.others : sockets.listening;
  if (wanted.empty()) return std::nullopt;
  std::error_code error;
  fs::directory_iterator process("/proc", error);
  for (; !error && process != fs::directory_iterator(); process.increment(error)) {
    const std::string pid = process->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (holds_one_of(process->path(), wanted)) {
      return "pid " + pid + " (" + name_of(process->path()) + ")";
    }
  }
  return std::nullopt;
}

}  // namespace ddp::rendezvous
