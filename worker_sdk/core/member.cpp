#include "worker_sdk/core/member.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <ddp/error.hpp>

namespace ddp::sdk {
namespace {

namespace json = boost::json;

std::string text_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  return std::string(value->get_string());
}

std::int64_t number_of(const json::object& object, const char* name, std::int64_t otherwise) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return otherwise;
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  return error ? otherwise : number;
}

std::optional<json::object> parse_object(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

json::object require_object(const std::string& text, const std::string& what) {
  auto object = parse_object(text);
  if (!object) {
    throw Unavailable("the store holds something unreadable as the " + what +
                      "; does another program write keys under /ddp/?");
  }
  return *std::move(object);
}

}  // namespace

std::string encode_member(const Member& member) {
  const json::object object{{"host", member.host},
                            {"node", member.node},
                            {"system", member.system},
                            {"pid", member.pid},
                            {"address", member.address},
                            {"backend", member.backend},
                            {"sdk", member.sdk},
                            {"devices", member.devices},
                            {"no_devices", member.no_devices},
                            {"control", member.control_page}};
  return json::serialize(object);
}

Member decode_member(int rank, const std::string& text) {
  const json::object object = require_object(text, "member record of rank " + std::to_string(rank));
  Member member;
  member.rank = rank;
  member.host = text_of(object, "host");
  member.node = text_of(object, "node");
  member.system = text_of(object, "system");
  member.pid = number_of(object, "pid", 0);
  member.address = text_of(object, "address");
  member.backend = text_of(object, "backend");
  member.sdk = text_of(object, "sdk");
  member.devices = static_cast<int>(number_of(object, "devices", 0));
  member.no_devices = text_of(object, "no_devices");
  member.control_page = text_of(object, "control");
  return member;
}

bool same_host(const Member& a, const Member& b) {
  const bool both_have_agents = a.node != a.system && b.node != b.system;
  return both_have_agents ? a.node == b.node : a.system == b.system;
}

std::vector<int> local_ranks(const std::vector<Member>& members, int rank) {
  std::vector<int> ranks;
  for (const Member& member : members) {
    if (same_host(member, members[static_cast<std::size_t>(rank)])) ranks.push_back(member.rank);
  }
  return ranks;
}

bool share_control_page(const std::vector<Member>& members, const std::vector<int>& ranks) {
  const std::string& first = members[static_cast<std::size_t>(ranks.front())].control_page;
  if (first.empty()) return false;
  for (const int rank : ranks) {
    if (members[static_cast<std::size_t>(rank)].control_page != first) return false;
  }
  return true;
}

namespace {

// Empty: every rank has a GPU of its own. Else why not.
std::string why_no_gpus(const std::vector<Member>& members) {
  for (const Member& member : members) {
    const auto neighbours = static_cast<int>(local_ranks(members, member.rank).size());
    if (member.devices >= neighbours) continue;
    const std::string who = "rank " + std::to_string(member.rank) + " on " + member.host;
    if (member.devices == 0) return who + " can use no GPU: " + member.no_devices;
    return who + " sees " + std::to_string(member.devices) +
           (member.devices == 1 ? " GPU" : " GPUs") + ", but " + std::to_string(neighbours) +
           " ranks are on that host, and NCCL wants one for each (CUDA_VISIBLE_DEVICES must leave "
           "every rank the GPUs of all)";
  }
  return {};
}

}  // namespace

BackendChoice choose_backends(const std::vector<Member>& members) {
  const Member& first = members.front();
  for (const Member& member : members) {
    if (member.backend != first.backend) {
      throw Mismatch("rank 0 asks for the backend \"" + first.backend + "\", but rank " +
                     std::to_string(member.rank) + " on " + member.host + " for \"" +
                     member.backend + "\"; all ranks must ask for the same");
    }
  }
  const Member* stranger = nullptr;
  for (const Member& member : members) {
    if (!same_host(member, first)) stranger = &member;
  }
  BackendChoice choice;
  choice.shared_memory = stranger == nullptr && first.backend != "gloo";
  if (first.backend == "shm") {
    if (stranger != nullptr) {
      throw Unavailable("the backend \"shm\" needs all ranks on one host, but rank 0 is on " +
                        first.host + " and rank " + std::to_string(stranger->rank) + " on " +
                        stranger->host + "; use gloo or auto");
    }
    choice.must_share = true;
  }
  if (first.backend == "nccl" || first.backend == "auto") {
    const std::string reason = why_no_gpus(members);
    choice.nccl = reason.empty();
    if (first.backend == "nccl" && !choice.nccl) {
      throw Unavailable("the backend \"nccl\" cannot be used: " + reason);
    }
  }
  return choice;
}

std::string encode_record(const SharedMemoryRecord& record) {
  return json::serialize(json::object{{"pid", record.pid},
                                      {"fd", record.fd},
                                      {"size", record.size},
                                      {"token", record.token},
                                      {"control_fd", record.control_fd}});
}

SharedMemoryRecord decode_record(const std::string& text) {
  const json::object object = require_object(text, "record of the shared memory");
  SharedMemoryRecord record;
  record.pid = number_of(object, "pid", 0);
  record.fd = static_cast<int>(number_of(object, "fd", -1));
  record.size = static_cast<std::uint64_t>(number_of(object, "size", 0));
  record.token = text_of(object, "token");
  record.control_fd = static_cast<int>(number_of(object, "control_fd", -1));
  return record;
}

std::string describe(const Death& death) {
  std::string who = "a rank";
  if (death.rank >= 0) {
    who = "rank " + std::to_string(death.rank) + " on " + death.host;
  } else if (!death.host.empty()) {
    who = "the node " + death.host;
  }
  return who + " is lost (" + death.reason + ")";
}

std::optional<Death> decode_death_notice(const std::string& text) {
  const auto object = parse_object(text);
  if (!object) return std::nullopt;
  Death notice;
  notice.rank = static_cast<int>(number_of(*object, "rank", -1));
  notice.host = text_of(*object, "host");
  notice.reason = text_of(*object, "message");
  if (notice.reason.empty()) {
    const auto signal = number_of(*object, "signal", 0);
    const auto code = number_of(*object, "exit_code", -1);
    notice.reason = signal > 0 ? "killed by signal " + std::to_string(signal)
                               : "ended with code " + std::to_string(code);
  }
  return notice;
}

}  // namespace ddp::sdk
