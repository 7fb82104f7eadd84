// What a worker writes, to its streams and its error file, on its way into the verdict: the first
// byte says how it died and in which pieces its output comes, what stands before the first NUL is
// its error file, the rest its output.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/system/error_code.hpp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/core/error_file.h"
#include "launcher/core/evidence.h"
#include "launcher/core/output_tail.h"
#include "launcher/core/verdict.h"
#include "launcher/core/verdict_json.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {
namespace {

std::string tail_of(std::string_view output, std::size_t piece) {
  OutputTail tail;
  while (!output.empty()) {
    const std::string_view part = output.substr(0, piece);
    output.remove_prefix(part.size());
    tail.add(part);
  }
  return tail.text();
}

bool is_control(char c) {
  const auto code = static_cast<unsigned char>(c);
  return (code < 0x20 && c != '\t') || code == 0x7f;
}

// Nothing that a worker says may move the cursor, or push the cause off the screen.
void check_text(const std::string& text) {
  std::size_t lines = 0;
  for (const char c : text) {
    DDP_ASSERT(c == '\n' || !is_control(c));
    lines += c == '\n' ? 1 : 0;
  }
  DDP_ASSERT(lines > 0 && lines <= 25 && text.back() == '\n');
  DDP_ASSERT(text.size() < 16 * 1024);
}

}  // namespace
}  // namespace ddp::launcher

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::launcher;
  if (size < 1) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(all.find('\0'), all.size());
  const std::string_view output = all.substr(end);

  ddp::rendezvous::Failure failure;
  const bool killed = (data[0] & 1U) != 0;
  failure.kind = killed ? ddp::rendezvous::FailureKind::worker_signaled
                        : ddp::rendezvous::FailureKind::worker_exited;
  failure.rank = failure.local_rank = 1;
  failure.signal = killed ? SIGKILL : 0;
  failure.exit_code = killed ? -1 : 127;
  failure.message = parse_error_file(all.substr(0, end)).message;
  failure.last_output = tail_of(output, 1 + data[0] % 64);
  failure.secondary = tells_of_lost_peer(failure.message, failure.last_output);
  DDP_ASSERT(failure.last_output == tail_of(output, output.size() + 1));

  ddp::rendezvous::Verdict verdict;
  verdict.exit_code = 1;
  verdict.failure = failure;
  const VerdictContext context;
  check_text(verdict_text(verdict, context));

  boost::system::error_code error;
  ReportFacts facts;
  facts.verdict = verdict;
  (void)boost::json::parse(verdict_json(facts, context), error);
  DDP_ASSERT(!error);
  return 0;
}
