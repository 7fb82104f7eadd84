// The shapes that a writer may give to each digit, as strokes on a small grid.
#pragma once

#include <vector>

namespace train_mlp {

struct Point {
  float x = 0;
  float y = 0;
};

// One movement of the pen: straight from point to point, or a smooth curve through all of them.
struct Stroke {
  bool curved = false;
  std::vector<Point> points;
};

// One way to write a digit, inside the square from (0, 0), top left, to (1, 1).
struct DigitStyle {
  int digit = 0;
  bool held_out = false;  // appears in the test set only
  std::vector<Stroke> strokes;
};

// All styles, sorted by digit.
std::vector<DigitStyle> all_digit_styles();

}  // namespace train_mlp
