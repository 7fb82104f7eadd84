#include "launcher/core/verdict.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "launcher/core/failure_text.h"

namespace ddp::launcher {
namespace {

using rendezvous::Failure;
using rendezvous::FailureKind;
using rendezvous::Verdict;

constexpr int kMaxMessageLines = 12;

std::string headline(const Verdict& verdict) {
  if (!verdict.failure) {
    return verdict.reason.empty() ? "the job failed" : verdict.reason;
  }
  const std::string failure = describe_failure(*verdict.failure);
  if (verdict.exit_code == 0) {
    return "the job succeeded, although " + failure;
  }
  return (verdict.failure->kind == FailureKind::interrupted ? "the job was stopped: "
                                                            : "the job failed: ") +
         failure;
}

bool from_error_file(const Failure& failure) {
  return !failure.message.empty() && (failure.kind == FailureKind::worker_exited ||
                                      failure.kind == FailureKind::worker_signaled);
}

// The start of it, indented: a traceback belongs into the worker's own output.
std::string quote(const std::string& message) {
  std::string result;
  int lines = 0;
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    if (++lines > kMaxMessageLines) {
      return result + "    ...\n";
    }
    result += "    " + printable(message.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return result;
}

std::string aftermath(const Verdict& verdict, const VerdictContext& context) {
  std::vector<std::string> parts;
  if (context.workers_stopped > 0) {
    parts.push_back(std::to_string(context.workers_stopped) +
                    (context.workers_stopped == 1 ? " worker was" : " workers were") +
                    " stopped on this node");
  }
  if (context.max_restarts > 0) {
    parts.push_back(std::to_string(verdict.restarts_used) + " of " +
                    std::to_string(context.max_restarts) + " restarts used");
  }
  parts.push_back("ddplaunch exits with " + std::to_string(verdict.exit_code));
  std::string line;
  for (const std::string& part : parts) {
    line += (line.empty() ? "  " : ", ") + part;
  }
  return line + "\n";
}

std::string hint(const Failure& failure) {
  // One that could not be started has its reason in the line above.
  const bool ended = failure.kind == FailureKind::worker_exited;
  if (ended && failure.exit_code == rendezvous::exit_code::kNotFound) {
    return "127 mostly means that a program or a shared library was not found by what was started";
  }
  if (ended && failure.exit_code == rendezvous::exit_code::kNotExecutable) {
    return "126 mostly means that a program may not be executed, or is built for another machine";
  }
  if (failure.kind == FailureKind::worker_signaled && failure.signal == SIGKILL) {
    return "SIGKILL is mostly the kernel's, out of memory (see dmesg), or a batch system's";
  }
  return {};
}

}  // namespace

std::string verdict_text(const Verdict& verdict, const VerdictContext& context) {
  if (verdict.exit_code == 0 && !verdict.failure) {
    return {};
  }
  std::string text = "ddplaunch: " + printable(headline(verdict)) + "\n";
  if (verdict.failure && from_error_file(*verdict.failure)) {
    text += "  it says:\n" + quote(verdict.failure->message);
  }
  text += aftermath(verdict, context);
  const std::string advice = verdict.failure ? hint(*verdict.failure) : std::string();
  if (!advice.empty()) {
    text += "  hint: " + advice + "\n";
  }
  return text;
}

}  // namespace ddp::launcher
