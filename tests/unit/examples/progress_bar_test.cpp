#include "progress_bar.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

using train_mlp::ProgressBar;

TEST_CASE("progress bar: a terminal sees its line redrawn, and only when the picture changes") {
  std::ostringstream out;
  ProgressBar bar(out, true);
  bar.show("epoch 1", 500, 1000);
  CHECK(out.str() == "\repoch 1 [###############...............]  50 %");
  out.str("");
  bar.show("epoch 1", 501, 1000);
  CHECK(out.str().empty());
  bar.show("epoch 1", 1000, 1000);
  CHECK(out.str() == "\repoch 1 [##############################] 100 %");
}

TEST_CASE("progress bar: a shorter picture and an empty line leave nothing of a longer one") {
  std::ostringstream out;
  ProgressBar bar(out, true);
  bar.show("abcdef", 0, 10);
  out.str("");
  bar.show("abc", 0, 10);
  CHECK(out.str() == "\rabc [" + std::string(30, '.') + "]   0 %   ");
  out.str("");
  bar.clear();
  CHECK(out.str() == "\r" + std::string(42, ' ') + "\r");
  out.str("");
  bar.clear();
  CHECK(out.str().empty());
}

TEST_CASE("progress bar: a file or a pipe gets nothing") {
  std::ostringstream out;
  ProgressBar bar(out, false);
  bar.show("epoch 1", 5, 10);
  bar.clear();
  CHECK(out.str().empty());
}
