#include "launcher/core/worker_words.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using ddp::launcher::words_of;
using ddp::launcher::WorkerWords;
using ddp::rendezvous::Failure;

namespace {

using Lines = std::vector<std::string>;

WorkerWords words(const std::string& message, const std::string& output) {
  Failure failure;
  failure.message = message;
  failure.last_output = output;
  return words_of(failure);
}

std::string numbered(const std::string& word, int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += word + " " + std::to_string(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("worker_words: the last lines, without blank ones") {
  CHECK(words("", "").output == Lines{});
  CHECK(words("", "a\n\n \nb\n").output == Lines{"a", "b"});
  const Lines last = words("", numbered("line", 1, 40)).output;
  CHECK(last.size() == 16);
  CHECK(last.front() == "...");
  CHECK(last.back() == "line 40");
}

TEST_CASE("worker_words: the error file comes first, and nothing is shown twice") {
  const WorkerWords both =
      words("ValueError: x", "Traceback (most recent call last):\n  here\nValueError: x\n");
  CHECK(both.message == Lines{"ValueError: x"});
  CHECK(both.output == Lines{"Traceback (most recent call last):", "  here"});
  const WorkerWords several = words("ValueError: x\nand y", "a\nValueError: x\nand y\nb\n");
  CHECK(several.message == Lines{"ValueError: x", "and y"});
  CHECK(several.output == Lines{"a", "b"});
  CHECK(words("ValueError: x", "it says ValueError: x\n").output == Lines{"it says ValueError: x"});
}

TEST_CASE("worker_words: both together are few") {
  const WorkerWords long_ones = words(numbered("said", 1, 30), numbered("line", 1, 30));
  CHECK(long_ones.message.size() == 9);
  CHECK(long_ones.message.back() == "...");
  CHECK(long_ones.output.size() <= 8);
  CHECK(long_ones.output.back() == "line 30");
}

TEST_CASE("worker_words: what began it is among them, whatever a library prints after it") {
  const std::string output =
      "Traceback (most recent call last):\n  File \"train.py\", line 3\n"
      "RuntimeError: here it is\n" +
      numbered("frame #", 1, 40);
  const Lines shown = words("", output).output;
  CHECK(shown.size() <= 17);
  CHECK(std::find(shown.begin(), shown.end(), "RuntimeError: here it is") != shown.end());
  CHECK(shown.back() == "...");
}

TEST_CASE("worker_words: long lines are cut, never within a character") {
  const Lines shown = words("", std::string(239, 'a') + "\xc3\xa4tail").output;
  CHECK(shown == Lines{std::string(239, 'a') + "..."});
  CHECK(words("", std::string(5000, '\x80')).output.front().size() <= 243);
}

TEST_CASE("worker_words: they cannot steer the terminal") {
  CHECK(words("\x1b[2Jcleared\a\r", std::string("a\0b\x9b\xc2\x9b"
                                                "c",
                                                7))
            .message == Lines{"?[2Jcleared??"});
  CHECK(words("",
              "a\xc2\x9b"
              "2Jb")
            .output == Lines{"a?2Jb"});
}
