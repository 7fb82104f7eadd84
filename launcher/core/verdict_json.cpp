#include "launcher/core/verdict_json.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

#include "launcher/core/failure_text.h"
#include "launcher/core/signal_names.h"
#include "rendezvous/core/message_json_fields.h"

namespace ddp::launcher {
namespace {

namespace json = boost::json;
using rendezvous::Failure;
using rendezvous::message_json::as_text;

json::value milliseconds(rendezvous::Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

void add_end(json::object& object, std::int32_t exit_code, std::int32_t signal) {
  if (signal == 0) {
    object["exit_code"] = exit_code;
    return;
  }
  object["signal"] = signal;
  object["signal_name"] = signal_name(signal);
}

// What does not apply is left out.
json::object first_cause(const Failure& failure) {
  json::object object{{"kind", rendezvous::message_json::write(failure).at("kind")},
                      {"description", as_text(describe_failure(failure))},
                      {"host", as_text(failure.host)}};
  const auto add_number = [&object](const char* name, std::int64_t value) {
    if (value >= 0) object[name] = value;
  };
  add_number("rank", failure.rank);
  add_number("local_rank", failure.local_rank);
  add_number("pid", failure.pid);
  if (failure.exit_code >= 0 || failure.signal != 0) {
    add_end(object, failure.exit_code, failure.signal);
  }
  if (failure.ran_for > rendezvous::Duration{})
    object["ran_for_ms"] = milliseconds(failure.ran_for);
  add_number("peak_memory", failure.peak_memory);
  object["core_dumped"] = failure.core_dumped;
  object["lost_a_peer"] = failure.secondary;
  if (!failure.oom_counter.empty()) {
    object["oom_killed"] = failure.oom_killed;
    object["oom_counter"] = as_text(failure.oom_counter);
  }
  object["tied_ranks"] = json::array(failure.tied_ranks.begin(), failure.tied_ranks.end());
  object["message"] = as_text(failure.message);
  object["last_output"] = as_text(failure.last_output);
  return object;
}

json::array others(const std::vector<EndCount>& ends) {
  json::array list;
  for (const EndCount& end : ends) {
    json::object object{{"count", end.count}};
    add_end(object, end.exit_code, end.signal);
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace

std::string verdict_json(const ReportFacts& facts, const VerdictContext& context) {
  json::object report{{"format", 1},
                      {"run_id", as_text(facts.run_id)},
                      {"host", as_text(facts.host)},
                      {"exit_code", facts.exit_code},
                      {"succeeded", facts.exit_code == 0},
                      {"reason", as_text(facts.verdict ? facts.verdict->reason : facts.reason)},
                      {"restarts_used", facts.verdict ? facts.verdict->restarts_used : 0},
                      {"max_restarts", context.max_restarts},
                      {"workers_stopped", context.workers_stopped},
                      {"others_failed", others(context.others_failed)},
                      {"first_cause", nullptr}};
  if (facts.verdict && facts.verdict->failure) {
    const Failure& failure = *facts.verdict->failure;
    json::object cause = first_cause(failure);
    const std::string hint = hint_for(failure, context.hints);
    if (!hint.empty()) cause["hint"] = as_text(hint);
    report["first_cause"] = std::move(cause);
  }
  return json::serialize(report) + "\n";
}

}  // namespace ddp::launcher
