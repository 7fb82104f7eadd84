#include "launcher/core/error_file.h"

#include <catch2/catch.hpp>
#include <string>

using ddp::launcher::ErrorFile;
using ddp::launcher::parse_error_file;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("error file: both of PyTorch's forms are read") {
  const ErrorFile recorded =
      parse_error_file(R"({"message": {"message": "ValueError: x", "extraInfo":
                          {"py_callstack": "…", "timestamp": "1700000000"}}})");
  CHECK(recorded.message == "ValueError: x");
  CHECK(recorded.failed_at == seconds(1'700'000'000));
  const ErrorFile plain = parse_error_file(R"({"message": "plain", "timestamp": 1700000000})");
  CHECK(plain.message == "plain");
  CHECK(plain.failed_at == seconds(1'700'000'000));
}

TEST_CASE("error file: a time may be finer than seconds") {
  CHECK(parse_error_file(R"({"message": "x", "timestamp": 1700000000.25})").failed_at ==
        milliseconds(1'700'000'000'250));
  CHECK(parse_error_file(R"({"message": "x", "timestamp": "1700000000.25"})").failed_at ==
        milliseconds(1'700'000'000'250));
}

TEST_CASE("error file: whatever else is there is no message") {
  for (const char* text :
       {"", "{", "[]", "null", "3", "{}", R"({"message": 3})", R"({"message": {}})",
        R"({"message": {"message": ["x"]}})", "\xff\xfe", R"({"message": "x"} trailing)"}) {
    INFO(text);
    CHECK(parse_error_file(text).message.empty());
  }
  CHECK(parse_error_file("{\"message\": \"\xff!\"}").message == "\xff!");
  CHECK(parse_error_file(std::string(100'000, '[')).message.empty());
}

TEST_CASE("error file: whatever else is there is no time") {
  for (const char* time : {"0", "-1", "\"\"", "\"soon\"", "\"1700000000 s\"", "1e300", "-1e300",
                           "\"nan\"", "\"inf\"", "null", "[]", "{}", "true"}) {
    INFO(time);
    CHECK_FALSE(
        parse_error_file(std::string(R"({"message": "x", "timestamp": )") + time + "}").failed_at);
  }
  CHECK_FALSE(
      parse_error_file(R"({"message": {"message": "x"}, "timestamp": 1700000000})").failed_at);
}
