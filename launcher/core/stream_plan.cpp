#include "launcher/core/stream_plan.h"

namespace ddp::launcher {
namespace {

// Loop, signals, listener, control page, connections of nodes: counted generously.
constexpr std::uint64_t kOwnDescriptors = 24;

// Two to watch its end, one for its connection to the store.
constexpr std::uint64_t kPerWorker = 3;

}  // namespace

StreamPlan plan_streams(const StreamFacts& out, const StreamFacts& err) {
  const StreamRoute err_route = err.terminal ? StreamRoute::terminal : StreamRoute::pipe;
  if (out.device == err.device && out.inode == err.inode) {
    return {err_route, err_route, true, err.terminal};
  }
  StreamPlan plan;
  plan.err = err_route;
  if (out.terminal && !err.terminal) {
    plan.out = StreamRoute::terminal;
  }
  // Another terminal at stdout may be the same one under another name, and what reads a pipe (tee,
  // less) may write to it.
  plan.owns_terminal = err.terminal && !out.terminal && !out.piped;
  return plan;
}

StreamPlan without_terminals(const StreamPlan& plan) {
  StreamPlan rest = plan;
  if (rest.out == StreamRoute::terminal) {
    rest.out = StreamRoute::inherited;
  }
  if (rest.err == StreamRoute::terminal) {
    rest.err = StreamRoute::inherited;
    rest.joined = false;
    rest.owns_terminal = false;
  }
  return rest;
}

std::uint64_t descriptors_for(const StreamPlan& plan, std::int32_t workers) {
  std::uint64_t streams = 0;
  if (plan.err != StreamRoute::inherited) {
    ++streams;
  }
  if (plan.out != StreamRoute::inherited && !plan.joined) {
    ++streams;
  }
  return kOwnDescriptors + (kPerWorker + streams) * static_cast<std::uint64_t>(workers);
}

}  // namespace ddp::launcher
