#include "stroke_digits.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "digit_styles.h"

namespace {

using train_mlp::DigitSet;
using train_mlp::kClasses;
using train_mlp::kImagePixels;
using train_mlp::make_stroke_digits;
using train_mlp::Split;

std::uint64_t fingerprint(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

}  // namespace

TEST_CASE("digits: the same images from every compiler, at every optimisation level") {
  CHECK(fingerprint(make_stroke_digits(500, Split::train, 1).pixels) == 0xbce1e0f305d61fd9u);
  CHECK(fingerprint(make_stroke_digits(500, Split::test, 1).pixels) == 0x254f97bc55f55733u);
}

TEST_CASE(
    "digits: an image depends on the seed, the split and its number, not on how many there are") {
  const DigitSet many = make_stroke_digits(60, Split::train, 3);
  const DigitSet few = make_stroke_digits(20, Split::train, 3);
  CHECK(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
  CHECK(few.pixels != make_stroke_digits(20, Split::train, 4).pixels);
  CHECK(few.pixels != make_stroke_digits(20, Split::test, 3).pixels);
}

TEST_CASE("digits: as many of each digit as of the others") {
  const DigitSet digits = make_stroke_digits(300, Split::test, 1);
  REQUIRE(digits.size() == 300);
  for (std::size_t digit = 0; digit < kClasses; ++digit) {
    CHECK(std::count(digits.labels.begin(), digits.labels.end(), digit) == 30);
  }
}

TEST_CASE("digits: every image has ink and paper") {
  const DigitSet digits = make_stroke_digits(500, Split::train, 1);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    CAPTURE(i);
    const std::uint8_t* image = digits.image(i);
    CHECK(std::count_if(image, image + kImagePixels, [](int v) { return v > 100; }) >= 6);
    CHECK(std::count_if(image, image + kImagePixels, [](int v) { return v < 80; }) >= 100);
  }
}

TEST_CASE("digits: each is written in several ways, and one of them is kept for the test") {
  std::array<int, kClasses> known{};
  std::array<int, kClasses> held_out{};
  for (const train_mlp::DigitStyle& style : train_mlp::all_digit_styles()) {
    REQUIRE(style.digit >= 0);
    REQUIRE(style.digit < static_cast<int>(kClasses));
    ++(style.held_out ? held_out : known)[static_cast<std::size_t>(style.digit)];
    REQUIRE_FALSE(style.strokes.empty());
    for (const train_mlp::Stroke& stroke : style.strokes) {
      CHECK(stroke.points.size() >= 2);
      for (const train_mlp::Point& p : stroke.points) {
        CHECK((p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 1));
      }
    }
  }
  for (std::size_t digit = 0; digit < kClasses; ++digit) {
    CHECK(known[digit] >= 3);
    CHECK(held_out[digit] >= 1);
  }
}

TEST_CASE("digits: a sheet is a grey picture of the first images") {
  const std::string path = "stroke_digits_sheet_test.pgm";
  const DigitSet digits = make_stroke_digits(6, Split::train, 1);
  REQUIRE(write_image_sheet(digits, 3, 2, path));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::remove(path.c_str());
  const std::string header = "P5\n48 32\n255\n";
  REQUIRE(bytes.size() == header.size() + 6 * kImagePixels);
  CHECK(bytes.substr(0, header.size()) == header);
  // The second line of pixels of the picture's second image.
  CHECK(bytes.substr(header.size() + 48 + 16, 16) ==
        std::string(reinterpret_cast<const char*>(digits.image(1)) + 16, 16));
  CHECK_FALSE(write_image_sheet(digits, 3, 2, "/nonexistent/sheet.pgm"));
}
