#include "launcher/core/verdict.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include "launcher/core/failure_text.h"
#include "launcher/core/quantity_text.h"
#include "launcher/core/signal_names.h"
#include "launcher/core/worker_words.h"
#include "rendezvous/core/round_outcome.h"

namespace ddp::launcher {
namespace {

using rendezvous::Failure;
using rendezvous::FailureKind;
using rendezvous::Verdict;

constexpr std::size_t kMostKinds = 4;  // of others' ends that are told
constexpr std::size_t kMostRanks = 12;
constexpr std::chrono::milliseconds kShortestTold{10};

std::string headline(const Verdict& verdict) {
  if (!verdict.failure) {
    return verdict.reason.empty() ? "the job failed" : verdict.reason;
  }
  const Failure& failure = *verdict.failure;
  std::string text = describe_failure(failure);
  if (failure.ran_for >= kShortestTold) {
    text += " after " + duration_text(failure.ran_for);
  }
  if (verdict.exit_code == 0) {
    return "the job succeeded, although " + text;
  }
  return (failure.kind == FailureKind::interrupted ? "the job was stopped: " : "the job failed: ") +
         text;
}

std::string line(const std::string& text) {
  return "  " + text + "\n";
}

std::string quote(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) {
    return {};
  }
  std::string text = line(title + ":");
  for (const std::string& one : lines) {
    text += "    " + one + "\n";
  }
  return text;
}

// Only where memory may be the reason.
std::string memory(const Failure& failure) {
  std::string text;
  if (failure.oom_killed) {
    // The counter says that something was killed since the round began, not what.
    const bool ours = failure.signal == SIGKILL && failure.oom_counter.rfind("cgroup", 0) == 0;
    text = "the kernel killed for want of memory in this round (" + failure.oom_counter + "): " +
           (ours ? "most likely this worker" : "perhaps this worker, perhaps something else");
  } else if (failure.signal == SIGKILL && !failure.oom_counter.empty()) {
    text = "SIGKILL was sent by another process: the kernel counts no kill for want of memory (" +
           failure.oom_counter + ")";
  } else if (failure.signal != SIGKILL) {
    return {};
  }
  if (failure.peak_memory >= 0) {
    text += (text.empty() ? "at its peak it used " : "; at its peak it used ") +
            memory_text(failure.peak_memory);
  }
  return text.empty() ? text : line(printable(text));
}

std::string ties(const Failure& failure) {
  if (failure.tied_ranks.empty()) {
    return {};
  }
  std::string ranks = std::to_string(failure.rank);
  const std::size_t count = failure.tied_ranks.size();
  for (std::size_t i = 0; i < std::min(count, kMostRanks); ++i) {
    ranks += (i + 1 == count ? " and " : ", ") + std::to_string(failure.tied_ranks[i]);
  }
  ranks += count > kMostRanks ? " and others" : "";
  return line("ranks " + ranks +
              " were found dead in the same moment: any of them may have been "
              "the first");
}

std::string told_by_worker(const Failure& failure) {
  const WorkerWords words = words_of(failure);
  std::string text;
  if (words.message.size() == 1) {
    text = line("it says: " + words.message.front());
  } else {
    text = quote("it says", words.message);
  }
  text += quote("its last output", words.output);
  if (failure.secondary) {
    text += line(
        "so it lost a peer, but no worker is known to have failed before it: one may hang, "
        "or the network broke");
  }
  return text;
}

std::string of_end(const EndCount& end, bool beside_a_worker) {
  const std::string who = beside_a_worker ? " other" : " worker";
  return std::to_string(end.count) + who + (end.count == 1 ? "" : "s") +
         (end.signal != 0 ? (end.count == 1 ? " was" : " were") + std::string(" killed by ") +
                                signal_name(end.signal)
                          : " exited with code " + std::to_string(end.exit_code));
}

std::string aftermath(const Verdict& verdict, const VerdictContext& context) {
  std::vector<std::string> parts;
  const bool beside_a_worker =
      verdict.failure && rendezvous::is_worker_death(verdict.failure->kind);
  for (const EndCount& end : context.others_failed) {
    if (parts.size() == kMostKinds) {
      parts.emplace_back("more in other ways");
      break;
    }
    parts.push_back(of_end(end, beside_a_worker));
  }
  if (context.workers_stopped > 0) {
    parts.push_back(std::to_string(context.workers_stopped) +
                    (context.workers_stopped == 1 ? " worker was" : " workers were") + " stopped");
  }
  if (!parts.empty()) {
    parts.back() += " on this node";
  }
  if (context.max_restarts > 0) {
    parts.push_back(std::to_string(verdict.restarts_used) + " of " +
                    std::to_string(context.max_restarts) + " restarts used");
  }
  parts.push_back("ddplaunch exits with " + std::to_string(verdict.exit_code));
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ", ") + part;
  }
  return line(text);
}

}  // namespace

std::string verdict_text(const Verdict& verdict, const VerdictContext& context) {
  if (verdict.exit_code == 0 && !verdict.failure) {
    return {};
  }
  std::string text = "ddplaunch: " + printable(headline(verdict)) + "\n";
  const bool worker_died = verdict.failure && rendezvous::is_worker_death(verdict.failure->kind);
  if (worker_died) {
    const Failure& failure = *verdict.failure;
    text += memory(failure) + ties(failure) + told_by_worker(failure);
  }
  text += aftermath(verdict, context);
  const std::string advice =
      verdict.failure ? hint_for(*verdict.failure, context.hints) : std::string();
  if (!advice.empty()) {
    text += line("hint: " + printable(advice));
  }
  return text;
}

}  // namespace ddp::launcher
