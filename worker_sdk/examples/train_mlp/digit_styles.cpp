#include "digit_styles.h"

#include <string_view>

namespace train_mlp {
namespace {

struct StyleText {
  int digit;
  bool held_out;
  std::string_view strokes;
};

// Each stroke is `-` (straight) or `~` (curved) and its points: two figures each, x to the right
// and y down, on a grid of ten by ten. A point that is written twice makes a corner in a curve.
constexpr StyleText kStyles[] = {
    {0, false, "~50 21 15 28 59 78 84 71 50"},
    {0, false, "~71 40 22 15 28 59 77 74 61 60"},
    {0, false, "~40 21 24 27 49 67 64 60 30"},
    {0, true, "~50 21 15 28 59 78 84 71 50 -81 18"},
    {1, false, "-50 59"},
    {1, false, "-23 50 59"},
    {1, false, "-22 50 59 -29 89"},
    {1, true, "-41 51 ~51 55 59 79"},
    {2, false, "~12 20 50 72 64 37 19 -19 89"},
    {2, false, "~12 30 60 73 46 18 28 37 58 88"},
    {2, false, "~21 50 73 55 19 19 49 88"},
    {2, true, "-11 71 ~71 64 37 19 -19 89"},
    {3, false, "~11 40 71 63 44 44 75 77 59 18"},
    {3, false, "-11 71 44 ~44 75 77 49 18"},
    {3, false, "~12 30 61 62 34 34 65 67 49 17"},
    {3, true, "~10 50 71 64 44 33 44 64 77 59 19"},
    {4, false, "-60 16 86 -60 69"},
    {4, false, "-20 15 85 -63 69"},
    {4, false, "~20 13 25 65 ~71 75 69"},
    {4, true, "-69 60 16 16 76"},
    {5, false, "-70 20 14 ~14 43 74 77 59 18"},
    {5, false, "-20 14 ~14 53 76 78 49 18 -20 80"},
    {5, false, "~70 30 23 34 65 67 49 18"},
    {5, true, "-80 20 25 ~25 54 77 69 39 28"},
    {6, false, "~60 32 15 17 49 77 75 45 17"},
    {6, false, "~40 22 16 28 59 78 66 36 28"},
    {6, false, "-70 25 ~25 17 39 68 66 35 16"},
    {6, true, "~80 40 23 27 59 77 64 34 26"},
    {7, false, "-10 80 39"},
    {7, false, "-10 80 39 -25 75"},
    {7, false, "~12 20 50 81 81 54 39"},
    {7, true, "-13 10 80 ~80 54 49"},
    {8, false, "~71 50 22 33 55 77 59 28 36 55 63 71"},
    {8, false, "~50 22 44 72 50 ~44 17 49 77 44"},
    {8, false, "~81 40 22 45 77 59 28 36 63 81"},
    {8, true, "~20 80 54 28 49 78 55 23 20"},
    {9, false, "~72 50 22 24 45 73 72 -72 69"},
    {9, false, "~72 50 22 24 45 73 72 76 59 28"},
    {9, false, "~71 40 22 24 45 73 71 54 39"},
    {9, true, "~72 50 21 23 44 73 72 -72 74 ~74 77 58 27"},
};

bool is_pen(char c) {
  return c == '-' || c == '~';
}

std::vector<Stroke> parse_strokes(std::string_view text) {
  std::vector<Stroke> strokes;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
    } else if (is_pen(text[i])) {
      strokes.push_back(Stroke{text[i] == '~', {}});
      ++i;
    } else {
      strokes.back().points.push_back(Point{static_cast<float>(text[i] - '0') / 9.0f,
                                            static_cast<float>(text[i + 1] - '0') / 9.0f});
      i += 2;
    }
  }
  return strokes;
}

}  // namespace

std::vector<DigitStyle> all_digit_styles() {
  std::vector<DigitStyle> styles;
  for (const StyleText& style : kStyles) {
    styles.push_back(DigitStyle{style.digit, style.held_out, parse_strokes(style.strokes)});
  }
  return styles;
}

}  // namespace train_mlp
