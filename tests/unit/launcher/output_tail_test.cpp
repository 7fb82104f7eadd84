#include "launcher/core/output_tail.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace {

using ddp::launcher::OutputTail;

std::string tail_of(const std::string& bytes) {
  OutputTail tail;
  tail.add(bytes);
  return tail.text();
}

std::string numbered(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("output tail: nothing written is no text") {
  CHECK(OutputTail().text().empty());
  CHECK(tail_of("\n\n").empty());
}

TEST_CASE("output tail: the last lines, the unfinished one too") {
  CHECK(tail_of("a\nb") == "a\nb");
  CHECK(tail_of("a\n\nb\n\n\n") == "a\n\nb");
  std::string expected = numbered(11, 30);
  expected.pop_back();
  CHECK(tail_of(numbered(1, 30)) == expected);
}

TEST_CASE("output tail: how the bytes were cut into pieces makes no difference") {
  const std::string bytes =
      "one\r\n\x1b[31mred\x1b[0m\rtwo\r\x1b]0;title\x07three\n" + numbered(1, 9);
  const std::string expected = tail_of(bytes);
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    OutputTail tail;
    for (std::size_t at = 0; at < bytes.size(); at += piece) tail.add(bytes.substr(at, piece));
    CHECK(tail.text() == expected);
  }
}

TEST_CASE("output tail: of a line that is written over the last state counts") {
  CHECK(tail_of("before\n10%\r20%\r30%") == "before\n30%");
  CHECK(tail_of("10%\r20%\r") == "20%");  // the cursor has gone back, nothing is written over yet
  CHECK(tail_of("10%\r20%\nafter\r\n") == "20%\nafter");
  CHECK(tail_of("wait |\b/\b-") == "wait -");
}

TEST_CASE("output tail: colours and movements are left out, other control characters show") {
  CHECK(tail_of("\x1b[1;31mError\x1b[0m: no\n") == "Error: no");
  CHECK(tail_of("\x1b[2K\x1b[1A\x1b(Bplain") == "plain");
  CHECK(tail_of("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\") == "link");
  CHECK(tail_of("a\x1b]never ended\nb") == "a\nb");
  CHECK(tail_of(std::string("a\0b\x01", 4)) == "a?b?");
  CHECK(tail_of("tab\tstays, bell\a goes") == "tab\tstays, bell goes");
}

TEST_CASE("output tail: bytes that are no UTF-8 survive") {
  CHECK(tail_of("\xff\xfe\x80 \xc3\xa9") == "\xff\xfe\x80 \xc3\xa9");
}

TEST_CASE("output tail: it is bounded, whatever comes") {
  SECTION("one endless line keeps its start") {
    OutputTail tail;
    for (int i = 0; i < 1000; ++i) tail.add(std::string(1000, static_cast<char>('a' + i % 26)));
    const std::string text = tail.text();
    CHECK(text.substr(0, 2) == "aa");
    CHECK(text.substr(text.size() - 3) == "...");
    CHECK(text.size() <= OutputTail::kMaxLine + 3);
  }
  SECTION("long lines: the last ones, whole") {
    OutputTail tail;
    for (int i = 0; i < 100; ++i) tail.add(std::string(900, 'x') + std::to_string(i) + "\n");
    const std::string text = tail.text();
    CHECK(text.size() <= OutputTail::kMaxBytes);
    CHECK(text.substr(text.size() - 4) == "xx99");
    CHECK(std::count(text.begin(), text.end(), '\n') == 8);
  }
  SECTION("pieces larger than the tail") {
    OutputTail tail;
    tail.add("lost\n" + std::string(1 << 20, '\n') + "kept\n");
    CHECK(tail.text().find("kept") != std::string::npos);
    CHECK(tail.text().size() <= OutputTail::kMaxBytes);
  }
}

TEST_CASE("output tail: an error above a progress bar is not pushed out by it") {
  OutputTail tail;
  tail.add("ValueError: the cause\n");
  for (int i = 0; i < 10000; ++i) tail.add("\r" + std::to_string(i) + " of 10000, 3.2 it/s");
  CHECK(tail.text() == "ValueError: the cause\n9999 of 10000, 3.2 it/s");
}
