#include "rendezvous/core/message_json_fields.h"

#include <algorithm>
#include <array>
#include <boost/json/value_from.hpp>
#include <charconv>
#include <limits>

#include "rendezvous/core/message_json.h"

namespace ddp::rendezvous::message_json {
namespace {

using message_json::write;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, 7> kPhases = {"idle",      "placed",   "running", "failed",
                                                     "succeeded", "stopping", "stopped"};
constexpr std::array<std::string_view, 6> kFailureKinds = {"worker_exited", "worker_signaled",
                                                           "spawn_failed",  "interrupted",
                                                           "node_lost",     "launcher_failed"};

// The length of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2   ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xF0 && at(1) < 0x90);
  const bool surrogate = first == 0xED && at(1) >= 0xA0;
  const bool beyond = first == 0xF4 && at(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// What a character of that many bytes takes between the quotes, at most.
std::size_t escaped_size(unsigned char first, std::size_t length) {
  constexpr std::size_t kAsNumber = 6;  // \u001b
  if (first < 0x20) return kAsNumber;
  return first == '"' || first == '\\' ? 2 : length;
}

json::string hex(std::uint64_t bits) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bits, 16).ptr;
  return json::string(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

json::value write(const RoundId& round) {
  return json::object{{"number", round.number}, {"nonce", hex(round.nonce)}};
}
json::value write(const Endpoint& endpoint) {
  return json::object{{"host", as_text(endpoint.host)}, {"port", endpoint.port.value}};
}
json::value write(const Placement& placement) {
  json::object object{{"round", write(placement.round)},
                      {"group_rank", placement.group_rank.value},
                      {"group_world_size", placement.group_world_size},
                      {"first_rank", placement.first_rank.value},
                      {"world_size", placement.world_size},
                      {"role_first_rank", placement.role_first_rank.value},
                      {"role_world_size", placement.role_world_size},
                      {"restart_count", placement.restart_count},
                      {"max_restarts", placement.max_restarts}};
  if (placement.master) object["master"] = write(*placement.master);
  return object;
}
json::value write(const Verdict& verdict) {
  json::object object{{"exit_code", verdict.exit_code},
                      {"reason", as_text(verdict.reason)},
                      {"restarts_used", verdict.restarts_used}};
  if (verdict.failure) object["failure"] = write(*verdict.failure);
  return object;
}

struct OrderToJson {
  json::object operator()(const Wait& wait) const {
    json::object object{{"kind", "wait"}, {"reason", as_text(wait.reason)}};
    if (wait.remaining) object["remaining_ms"] = write(*wait.remaining);
    if (wait.pausing) object["pausing"] = true;
    return object;
  }
  json::object operator()(const Run& run) const {
    json::object object{{"kind", "run"}, {"placement", write(run.placement)}};
    if (run.loss) object["loss"] = write(*run.loss);
    return object;
  }
  json::object operator()(const Stop& stop) const {
    json::object object{
        {"kind", "stop"}, {"round", write(stop.round)}, {"reason", as_text(stop.reason)}};
    if (stop.cause) object["cause"] = write(*stop.cause);
    return object;
  }
  json::object operator()(const Close& close) const {
    return {{"kind", "close"}, {"verdict", write(close.verdict)}};
  }
  json::object operator()(const Leave& leave) const {
    return {{"kind", "leave"}, {"verdict", write(leave.verdict)}};
  }
  json::object operator()(const Refuse& refuse) const {
    return {
        {"kind", "refuse"}, {"exit_code", refuse.exit_code}, {"reason", as_text(refuse.reason)}};
  }
};

}  // namespace

json::string as_text(std::string_view text) {
  json::string out;
  std::size_t size = 0;
  while (!text.empty() && size < kMaxText) {
    const std::size_t length = utf8_length(text);
    size +=
        escaped_size(static_cast<unsigned char>(text.front()), std::max<std::size_t>(length, 1));
    if (length == 0) {
      out.push_back('?');
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

json::value write(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

json::value write(const Failure& failure) {
  return json::object{{"kind", kFailureKinds[static_cast<std::size_t>(failure.kind)]},
                      {"rank", failure.rank},
                      {"local_rank", failure.local_rank},
                      {"pid", failure.pid},
                      {"host", as_text(failure.host)},
                      {"exit_code", failure.exit_code},
                      {"signal", failure.signal},
                      {"core_dumped", failure.core_dumped},
                      {"age_ms", write(failure.age)},
                      {"message", as_text(failure.message)},
                      {"secondary", failure.secondary},
                      {"ran_for_ms", write(failure.ran_for)},
                      {"oom_killed", failure.oom_killed},
                      {"oom_counter", as_text(failure.oom_counter)},
                      {"peak_memory", failure.peak_memory},
                      {"last_output", as_text(failure.last_output)},
                      {"tied_ranks", json::value_from(failure.tied_ranks)}};
}
json::value write(const NodeDescription& node) {
  json::object object{{"id", as_text(node.id.value)},
                      {"host", as_text(node.host)},
                      {"address", as_text(node.address)},
                      {"workers", node.workers},
                      {"role", as_text(node.role)},
                      {"limits", json::object{{"min", node.limits.min}, {"max", node.limits.max}}},
                      {"max_restarts", node.max_restarts},
                      {"restart_delay_ms", write(node.restart_delay)},
                      {"notify", node.notify}};
  if (node.node_rank) object["node_rank"] = *node.node_rank;
  return object;
}

json::value write(const NodeStatus& status) {
  json::object object{{"phase", kPhases[static_cast<std::size_t>(status.phase)]},
                      {"verdict_acknowledged", status.verdict_acknowledged}};
  if (status.round) object["round"] = write(*status.round);
  if (status.store) object["store"] = write(*status.store);
  if (status.failure) object["failure"] = write(*status.failure);
  if (status.loss) object["loss"] = write(*status.loss);
  if (status.lost_workers > 0) object["lost_workers"] = status.lost_workers;
  return object;
}

json::value write(const Order& order) {
  return std::visit(OrderToJson{}, order);
}

// ---- reading ---------------------------------------------------------------------------------

const json::value* ObjectReader::find(std::string_view name) const {
  const json::value* value = object_.if_contains({name.data(), name.size()});
  return value == nullptr || value->is_null() ? nullptr : value;
}

void ObjectReader::fail(std::string_view name, std::string_view what) {
  if (!error_.empty()) return;
  error_ = "member `" + path_ + "." + std::string(name) + "` " + std::string(what);
}

void ObjectReader::read(const json::value& value, std::string_view name, bool& out) {
  if (!value.is_bool()) return fail(name, "is not true or false");
  out = value.get_bool();
}

void ObjectReader::read(const json::value& value, std::string_view name, std::int64_t& out) {
  if (!value.is_int64()) return fail(name, "is not an integer");
  out = value.get_int64();
}

void ObjectReader::read(const json::value& value, std::string_view name, std::int32_t& out) {
  std::int64_t wide = 0;
  read(value, name, wide);
  if (wide < std::numeric_limits<std::int32_t>::min() ||
      wide > std::numeric_limits<std::int32_t>::max()) {
    return fail(name, "does not fit in 32 bits");
  }
  out = static_cast<std::int32_t>(wide);
}

void ObjectReader::read(const json::value& value, std::string_view name, std::string& out) {
  const json::string* text = value.if_string();
  if (text == nullptr) return fail(name, "is not a string");
  out.assign(text->data(), text->size());
}

void ObjectReader::read(const json::value& value, std::string_view name, Duration& out) {
  constexpr std::int64_t kLongest = std::int64_t{1'000'000'000} * 1000;  // 31 years
  std::int64_t count = 0;
  read(value, name, count);
  if (count < 0 || count > kLongest) return fail(name, "is not a sensible time");
  out = milliseconds(count);
}

void ObjectReader::read(const json::value& value, std::string_view name,
                        std::vector<std::int32_t>& out) {
  constexpr std::size_t kMost = 1U << 16;  // workers of a node
  const json::array* numbers = value.if_array();
  if (numbers == nullptr || numbers->size() > kMost) return fail(name, "is not a list of numbers");
  for (const json::value& number : *numbers) read(number, name, out.emplace_back());
}

void ObjectReader::read(const json::value& value, std::string_view name, NodeId& out) {
  read(value, name, out.value);
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (out.value.size() != 32 || !std::all_of(out.value.begin(), out.value.end(), is_hex)) {
    fail(name, "is not 32 hexadecimal digits");
  }
}

void ObjectReader::read(const json::value& value, std::string_view name, RoundId& out) {
  inside(value, name, [&out](ObjectReader& in) {
    std::int64_t number = 0;
    in.required("number", number);
    if (number < 0) in.fail("number", "is negative");
    out.number = static_cast<std::uint64_t>(number);
    std::string digits;
    in.required("nonce", digits);
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, out.nonce, 16);
    if (digits.empty() || result.ec != std::errc() || result.ptr != end) {
      in.fail("nonce", "is not a hexadecimal number of 64 bits");
    }
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, Endpoint& out) {
  inside(value, name, [&out](ObjectReader& in) {
    std::int32_t port = 0;
    in.required("host", out.host);
    in.required("port", port);
    if (port < 0 || port > std::numeric_limits<std::uint16_t>::max()) {
      in.fail("port", "is not a port");
    }
    out.port.value = static_cast<std::uint16_t>(port);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, NodeLimits& out) {
  inside(value, name, [&out](ObjectReader& in) {
    in.required("min", out.min);
    in.required("max", out.max);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, NodePhase& out) {
  std::string word;
  read(value, name, word);
  const auto* found = std::find(kPhases.begin(), kPhases.end(), word);
  if (found == kPhases.end()) return fail(name, "is not a phase");
  out = static_cast<NodePhase>(found - kPhases.begin());
}

void ObjectReader::read(const json::value& value, std::string_view name, FailureKind& out) {
  std::string word;
  read(value, name, word);
  const auto* found = std::find(kFailureKinds.begin(), kFailureKinds.end(), word);
  if (found == kFailureKinds.end()) return fail(name, "is not a kind of failure");
  out = static_cast<FailureKind>(found - kFailureKinds.begin());
}

void ObjectReader::read(const json::value& value, std::string_view name, Failure& out) {
  inside(value, name, [&out](ObjectReader& in) {
    in.required("kind", out.kind);
    in.optional("rank", out.rank);
    in.optional("local_rank", out.local_rank);
    in.optional("pid", out.pid);
    in.optional("host", out.host);
    in.optional("exit_code", out.exit_code);
    in.optional("signal", out.signal);
    in.optional("core_dumped", out.core_dumped);
    in.optional("age_ms", out.age);
    in.optional("message", out.message);
    in.optional("secondary", out.secondary);
    in.optional("ran_for_ms", out.ran_for);
    in.optional("oom_killed", out.oom_killed);
    in.optional("oom_counter", out.oom_counter);
    in.optional("peak_memory", out.peak_memory);
    in.optional("last_output", out.last_output);
    in.optional("tied_ranks", out.tied_ranks);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, NodeStatus& out) {
  inside(value, name, [&out](ObjectReader& in) {
    in.required("phase", out.phase);
    in.optional("round", out.round);
    in.optional("store", out.store);
    in.optional("failure", out.failure);
    in.optional("loss", out.loss);
    in.optional("lost_workers", out.lost_workers);
    in.optional("verdict_acknowledged", out.verdict_acknowledged);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, NodeDescription& out) {
  inside(value, name, [&out](ObjectReader& in) {
    in.required("id", out.id);
    in.optional("host", out.host);
    in.optional("address", out.address);
    in.optional("workers", out.workers);
    in.optional("role", out.role);
    in.required("limits", out.limits);
    in.optional("max_restarts", out.max_restarts);
    in.optional("restart_delay_ms", out.restart_delay);
    in.optional("notify", out.notify);
    in.optional("node_rank", out.node_rank);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, Placement& out) {
  inside(value, name, [&out](ObjectReader& in) {
    in.required("round", out.round);
    in.required("group_rank", out.group_rank);
    in.required("group_world_size", out.group_world_size);
    in.required("first_rank", out.first_rank);
    in.required("world_size", out.world_size);
    in.required("role_first_rank", out.role_first_rank);
    in.required("role_world_size", out.role_world_size);
    in.optional("restart_count", out.restart_count);
    in.optional("max_restarts", out.max_restarts);
    in.optional("master", out.master);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, Verdict& out) {
  inside(value, name, [&out](ObjectReader& in) {
    in.required("exit_code", out.exit_code);
    in.optional("reason", out.reason);
    in.optional("failure", out.failure);
    in.optional("restarts_used", out.restarts_used);
  });
}

void ObjectReader::read(const json::value& value, std::string_view name, Order& out) {
  inside(value, name, [&out](ObjectReader& in) {
    std::string kind;
    in.required("kind", kind);
    if (kind == "wait") {
      Wait wait;
      in.optional("reason", wait.reason);
      in.optional("remaining_ms", wait.remaining);
      in.optional("pausing", wait.pausing);
      out = std::move(wait);
    } else if (kind == "run") {
      Run run;
      in.required("placement", run.placement);
      in.optional("loss", run.loss);
      out = std::move(run);
    } else if (kind == "stop") {
      Stop stop;
      in.required("round", stop.round);
      in.optional("reason", stop.reason);
      in.optional("cause", stop.cause);
      out = std::move(stop);
    } else if (kind == "close") {
      in.required("verdict", out.emplace<Close>().verdict);
    } else if (kind == "leave") {
      in.required("verdict", out.emplace<Leave>().verdict);
    } else if (kind == "refuse") {
      Refuse refuse;
      in.required("exit_code", refuse.exit_code);
      in.optional("reason", refuse.reason);
      out = std::move(refuse);
    } else {
      in.fail("kind", "is not an order that this version knows");
    }
  });
}

}  // namespace ddp::rendezvous::message_json
