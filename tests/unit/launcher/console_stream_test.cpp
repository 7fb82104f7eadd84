#include "launcher/core/console_stream.h"

#include <catch2/catch.hpp>
#include <string>

namespace {

using ddp::launcher::ConsoleStream;

// All that a console would get, in order.
struct Console {
  ConsoleStream stream;
  std::string written;

  void output(const std::string& bytes) { written += stream.before_output(bytes) + bytes; }
  void line(const std::string& text) { written += stream.lines(text + "\n"); }
  void draw(const std::string& status, std::size_t width = 80) {
    written += stream.draw(status, width);
  }
};

}  // namespace

TEST_CASE("console stream: workers' bytes are not touched") {
  Console console;
  console.output("a");
  console.output("b\r");
  console.output("\n\xff\n");
  CHECK(console.written == "ab\r\n\xff\n");
}

TEST_CASE("console stream: our lines begin in the first column") {
  Console console;
  console.line("first");
  console.output("half");
  console.line("ours");
  console.line("ours too");
  console.output("bar\r");
  console.line("last");
  CHECK(console.written == "first\nhalf\nours\nours too\nbar\r\nlast\n");
}

TEST_CASE("console stream: a status line is erased before anything else comes") {
  Console console;
  console.draw("waiting");
  console.output("x\n");
  console.output("y\n");
  console.draw("waiting");
  console.line("ours");
  CHECK(console.written == "waiting\r\x1b[Kx\ny\nwaiting\r\x1b[Kours\n");
}

TEST_CASE(
    "console stream: a status line takes the place of the last one, and the same is not drawn "
    "again") {
  Console console;
  console.draw("one");
  console.draw("one");
  console.draw("two");
  console.draw("");
  console.draw("");
  CHECK(console.written == "one\r\x1b[Ktwo\r\x1b[K");
}

TEST_CASE("console stream: no status line behind an unfinished line") {
  Console console;
  console.output("half");
  CHECK_FALSE(console.stream.can_draw());
  console.draw("waiting");
  CHECK(console.written == "half");
  console.output(" done\n");
  CHECK(console.stream.can_draw());
  console.draw("waiting");
  CHECK(console.written == "half done\nwaiting");
}

TEST_CASE("console stream: a status line is cut to the width by characters") {
  Console console;
  console.draw("abcdef", 4);
  CHECK(console.written == "abc");
  console.draw("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3);
  CHECK(console.written == "abc\r\x1b[K\xc3\xa9\xc3\xa9");
  console.draw("abc", 0);
  CHECK(console.stream.drawn().empty());
}
