// The bytes of TCPStore requests, in the numbering of the server that they are for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddp::bench {

enum class Dialect {
  legacy,   // PyTorch up to 2.0
  current,  // from 2.2 on
  echo,  // the echo server of the limits: it is told sizes, and what the bytes mean is nothing to
         // it
};

// What a client sends, and how many bytes it gets back.
struct Exchange {
  std::string request;
  std::size_t reply_size = 0;
};

class Requests {
 public:
  explicit Requests(Dialect dialect) : legacy_(dialect == Dialect::legacy) {}

  // SET has no reply, so the number of keys is asked for behind it.
  [[nodiscard]] Exchange set(const std::string& key, const std::string& value) const {
    return {set_only(key, value) + code(7), 8};
  }
  [[nodiscard]] Exchange get(const std::string& key, std::size_t value_size) const {
    return {code(3) + blob(key), 8 + value_size};
  }
  [[nodiscard]] Exchange add(const std::string& key, std::int64_t delta) const {
    return {code(4) + blob(key) + number(static_cast<std::uint64_t>(delta)), 8};
  }
  [[nodiscard]] Exchange wait(const std::string& key) const {
    return {code(6) + number(1) + blob(key), 1};
  }
  [[nodiscard]] Exchange count_keys() const { return {code(7), 8}; }
  [[nodiscard]] std::string set_only(const std::string& key, const std::string& value) const {
    return code(1) + blob(key) + blob(value);
  }
  // With it a client opens its connection: empty, and no reply, for a legacy server.
  [[nodiscard]] Exchange hello() const {
    if (legacy_) return {};
    return {std::string("\x00\xCE\xF7\x85\x3C", 5) + std::string("\x0D", 1) + "ping", 4};
  }

 private:
  // The codes are those of the current numbering.
  [[nodiscard]] std::string code(int current) const {
    return {static_cast<char>(legacy_ ? current - 1 : current)};
  }
  static std::string number(std::uint64_t value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }
  static std::string blob(const std::string& bytes) { return number(bytes.size()) + bytes; }

  bool legacy_;
};

}  // namespace ddp::bench
