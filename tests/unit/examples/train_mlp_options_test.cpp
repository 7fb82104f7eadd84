#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "options.h"

namespace {

using train_mlp::Options;
using train_mlp::parse_options;
using train_mlp::UsageError;

Options parsed(const std::vector<std::string>& arguments) {
  const auto result = parse_options(arguments);
  REQUIRE(std::holds_alternative<Options>(result));
  return std::get<Options>(result);
}

std::string refused(const std::vector<std::string>& arguments) {
  const auto result = parse_options(arguments);
  REQUIRE(std::holds_alternative<UsageError>(result));
  return std::get<UsageError>(result).message;
}

}  // namespace

TEST_CASE("options: a value follows its option or an equals sign") {
  const Options options = parsed({"--epochs", "3", "--lr=0.5", "--dump=a=b", "--hidden", "7"});
  CHECK(options.plan.epochs == 3);
  CHECK(options.plan.learning_rate == 0.5f);
  CHECK(options.dump_file == "a=b");
  CHECK(options.hidden == 7);
}

TEST_CASE("options: the accuracy is promised for the default training only") {
  CHECK(parsed({}).trains_as_stated());
  CHECK(parsed({"--accumulate", "2", "--dump", "x"}).trains_as_stated());
  for (const std::string option : {"--epochs=1", "--batch-size=7", "--lr=1", "--momentum=0",
                                   "--hidden=9", "--samples=99", "--seed=4"}) {
    CAPTURE(option);
    CHECK_FALSE(parsed({option}).trains_as_stated());
  }
}

TEST_CASE("options: what is wrong is said in one line with what is wanted") {
  CHECK(refused({"--epochs", "x"}) == "--epochs wants a whole number from 1 to 10000, not \"x\"");
  CHECK(refused({"--epochs", "0"}) == "--epochs wants a whole number from 1 to 10000, not \"0\"");
  CHECK(refused({"--epochs", "3.5"}) ==
        "--epochs wants a whole number from 1 to 10000, not \"3.5\"");
  CHECK(refused({"--lr", "nan"}) == "--lr wants a number from 0 to 10, not \"nan\"");
  CHECK(refused({"--seed=-1"}) == "--seed wants a whole number from 0 to 2147483647, not \"-1\"");
  CHECK(refused({"--dump="}) == "--dump wants a file name, not \"\"");
  CHECK(refused({"--samples"}) == "--samples wants a whole number from 10 to 1000000 after it");
  CHECK(refused({"--epoch", "3"}) == "there is no option \"--epoch\"; --help lists them");
  CHECK(refused({"3"}) == "there is no option \"3\"; --help lists them");
}

TEST_CASE("options: help names every option") {
  CHECK(parsed({"--help"}).help);
  CHECK(parsed({"-h", "--nonsense"}).help);
  for (const std::string option : {"--epochs", "--batch-size", "--lr", "--momentum", "--hidden",
                                   "--samples", "--seed", "--accumulate", "--dump", "--images"}) {
    CHECK_THAT(train_mlp::usage_text(), Catch::Contains("  " + option + " "));
  }
}
