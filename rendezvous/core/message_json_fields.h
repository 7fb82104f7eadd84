// How each member of a message is written to and read from JSON.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/membership.h"

namespace ddp::rendezvous::message_json {

namespace json = boost::json;

// A string as JSON can carry it: valid UTF-8, cut where its JSON would get longer than kMaxText.
[[nodiscard]] json::string as_text(std::string_view text);
[[nodiscard]] json::value write(Duration duration);  // whole milliseconds
[[nodiscard]] json::value write(const Failure& failure);
[[nodiscard]] json::value write(const NodeDescription& node);
[[nodiscard]] json::value write(const NodeStatus& status);
[[nodiscard]] json::value write(const Order& order);

// Reads the members of one object into variables. The first thing that is wrong becomes `error`,
// one sentence that names the member by its path; what comes after it is skipped.
class ObjectReader {
 public:
  // All three outlive the reader.
  ObjectReader(const json::object& object, std::string path, std::string& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  template <typename T>
  void required(std::string_view name, T& out) {
    const json::value* value = find(name);
    if (value == nullptr) {
      fail(name, "is missing");
    } else if (error_.empty()) {
      read(*value, name, out);
    }
  }
  // A member that is absent or null leaves `out` as it is.
  template <typename T>
  void optional(std::string_view name, T& out) {
    const json::value* value = find(name);
    if (value != nullptr && error_.empty()) read(*value, name, out);
  }
  template <typename T>
  void optional(std::string_view name, std::optional<T>& out) {
    const json::value* value = find(name);
    if (value == nullptr || !error_.empty()) return;
    out.emplace();
    read(*value, name, *out);
  }

 private:
  [[nodiscard]] const json::value* find(std::string_view name) const;
  void fail(std::string_view name, std::string_view what);

  void read(const json::value& value, std::string_view name, bool& out);
  void read(const json::value& value, std::string_view name, std::int64_t& out);
  void read(const json::value& value, std::string_view name, std::int32_t& out);
  void read(const json::value& value, std::string_view name, std::string& out);
  void read(const json::value& value, std::string_view name, Duration& out);
  void read(const json::value& value, std::string_view name, std::vector<std::int32_t>& out);
  void read(const json::value& value, std::string_view name, NodeId& out);
  void read(const json::value& value, std::string_view name, RoundId& out);
  void read(const json::value& value, std::string_view name, Endpoint& out);
  void read(const json::value& value, std::string_view name, NodeLimits& out);
  void read(const json::value& value, std::string_view name, NodePhase& out);
  void read(const json::value& value, std::string_view name, FailureKind& out);
  void read(const json::value& value, std::string_view name, Failure& out);
  void read(const json::value& value, std::string_view name, NodeStatus& out);
  void read(const json::value& value, std::string_view name, NodeDescription& out);
  void read(const json::value& value, std::string_view name, Placement& out);
  void read(const json::value& value, std::string_view name, Verdict& out);
  void read(const json::value& value, std::string_view name, Order& out);
  template <typename Tag>
  void read(const json::value& value, std::string_view name, Strong<Tag, std::int32_t>& out) {
    read(value, name, out.value);
  }
  // Runs `fill(reader)` on an object inside this one.
  template <typename Fill>
  void inside(const json::value& value, std::string_view name, Fill&& fill) {
    const json::object* object = value.if_object();
    if (object == nullptr) return fail(name, "is not an object");
    ObjectReader reader(*object, path_ + "." + std::string(name), error_);
    fill(reader);
  }

  const json::object& object_;
  std::string path_;
  std::string& error_;
};

}  // namespace ddp::rendezvous::message_json
