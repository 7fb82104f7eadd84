#include "stroke_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <utility>

#include "digit_styles.h"
#include "random_numbers.h"

namespace train_mlp {
namespace {

constexpr std::size_t kTrainWriters = 400;
constexpr std::size_t kTestWriters = 100;
constexpr float kHeldOutShare = 0.03f;  // of the test set
constexpr int kCurveSteps = 4;          // line segments between two points of a curve
constexpr float kSide = static_cast<float>(kImageSide);

// What stays the same in all that one person writes.
struct Writer {
  std::uint64_t seed = 0;
  float slant = 0;
  float width = 1;
  float pen = 1;  // half the width of a line, in pixels
};

Writer make_writer(Split split, std::uint64_t seed, std::size_t number) {
  const std::uint64_t group = split == Split::train ? 1 : 2;
  Writer writer{mix_seed(seed, group, number)};
  RandomNumbers random(writer.seed);
  writer.slant = random.uniform(-0.25f, 0.35f);
  writer.width = random.uniform(0.75f, 1.1f);
  writer.pen = random.uniform(0.5f, 1.1f);
  return writer;
}

// Moves points smoothly: a grid of random shifts, interpolated between its nodes.
class Waviness {
 public:
  Waviness(RandomNumbers& random, float strength) {
    for (Point& node : nodes_) node = {random.bell() * strength, random.bell() * strength};
  }

  [[nodiscard]] Point shift_at(Point p) const {
    const float gx = std::clamp(p.x, 0.0f, 0.999f) * (kNodes - 1);
    const float gy = std::clamp(p.y, 0.0f, 0.999f) * (kNodes - 1);
    const auto column = static_cast<std::size_t>(gx);
    const auto row = static_cast<std::size_t>(gy);
    const float fx = gx - static_cast<float>(column);
    const float fy = gy - static_cast<float>(row);
    const Point* top = &nodes_[row * kNodes + column];
    const Point* bottom = top + kNodes;
    const auto blend = [&](float Point::*axis) {
      const float upper = top[0].*axis * (1 - fx) + top[1].*axis * fx;
      const float lower = bottom[0].*axis * (1 - fx) + bottom[1].*axis * fx;
      return upper * (1 - fy) + lower * fy;
    };
    return {blend(&Point::x), blend(&Point::y)};
  }

 private:
  static constexpr int kNodes = 4;
  std::array<Point, kNodes * kNodes> nodes_;
};

// From the unit square to pixels: slant, size, rotation, place.
struct Placement {
  float xx = 1, xy = 0, yx = 0, yy = 1;
  Point centre;

  [[nodiscard]] Point apply(Point p) const {
    const float x = p.x - 0.5f;
    const float y = p.y - 0.5f;
    return {centre.x + xx * x + xy * y, centre.y + yx * x + yy * y};
  }
};

Placement make_placement(const Writer& writer, RandomNumbers& random) {
  // Half-angle form of sine and cosine: exact arithmetic, no library function.
  const float t = random.bell() * 0.07f;
  const float cosine = (1 - t * t) / (1 + t * t);
  const float sine = 2 * t / (1 + t * t);
  const float height = kSide * random.uniform(0.64f, 0.84f);
  const float width = height * writer.width * random.uniform(0.8f, 1.1f) * 0.85f;
  const float slant = -(writer.slant + random.bell() * 0.08f) * height;
  Placement place;
  place.xx = cosine * width;
  place.xy = cosine * slant - sine * height;
  place.yx = sine * width;
  place.yy = sine * slant + cosine * height;
  place.centre = {kSide / 2 + random.uniform(-1.7f, 1.7f), kSide / 2 + random.uniform(-1.4f, 1.4f)};
  return place;
}

// A point of the Catmull-Rom curve between `b` and `c`.
Point on_curve(Point a, Point b, Point c, Point d, float t) {
  const auto axis = [t](float p0, float p1, float p2, float p3) {
    return 0.5f * (2 * p1 + (p2 - p0) * t + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t * t +
                   (3 * p1 - p0 - 3 * p2 + p3) * t * t * t);
  };
  return {axis(a.x, b.x, c.x, d.x), axis(a.y, b.y, c.y, d.y)};
}

std::vector<Point> trace(const Stroke& stroke) {
  const std::vector<Point>& p = stroke.points;
  std::vector<Point> line;
  for (std::size_t i = 0; i + 1 < p.size(); ++i) {
    const Point before = p[i == 0 ? 0 : i - 1];
    const Point after = p[std::min(i + 2, p.size() - 1)];
    for (int step = 0; step < kCurveSteps; ++step) {
      const float t = static_cast<float>(step) / kCurveSteps;
      line.push_back(stroke.curved ? on_curve(before, p[i], p[i + 1], after, t)
                                   : Point{p[i].x + (p[i + 1].x - p[i].x) * t,
                                           p[i].y + (p[i + 1].y - p[i].y) * t});
    }
  }
  line.push_back(p.back());
  return line;
}

// The paper: for each pixel the squared distance to the nearest line, then grey values.
class Canvas {
 public:
  Canvas() { distance_.fill(kFar); }

  void draw(Point a, Point b, float reach) {
    const auto range = [](float low, float high) {
      const float last = kSide - 1;
      return std::pair(static_cast<std::size_t>(std::clamp(std::floor(low), 0.0f, last)),
                       static_cast<std::size_t>(std::clamp(std::ceil(high), 0.0f, last)));
    };
    const auto [left, right] = range(std::min(a.x, b.x) - reach, std::max(a.x, b.x) + reach);
    const auto [top, bottom] = range(std::min(a.y, b.y) - reach, std::max(a.y, b.y) + reach);
    const Point along{b.x - a.x, b.y - a.y};
    const float length = along.x * along.x + along.y * along.y + 1e-6f;
    for (std::size_t y = top; y <= bottom; ++y) {
      for (std::size_t x = left; x <= right; ++x) {
        const Point from_a{static_cast<float>(x) + 0.5f - a.x, static_cast<float>(y) + 0.5f - a.y};
        const float t = std::clamp((from_a.x * along.x + from_a.y * along.y) / length, 0.0f, 1.0f);
        const float dx = from_a.x - t * along.x;
        const float dy = from_a.y - t * along.y;
        float& nearest = distance_[y * kImageSide + x];
        nearest = std::min(nearest, dx * dx + dy * dy);
      }
    }
  }

  void ink(float pen, float blur) {
    std::array<float, kImagePixels> sharp;
    for (std::size_t i = 0; i < kImagePixels; ++i) {
      sharp[i] = std::clamp(pen + 0.5f - std::sqrt(distance_[i]), 0.0f, 1.0f);
    }
    for (std::size_t y = 0; y < kImageSide; ++y) {
      for (std::size_t x = 0; x < kImageSide; ++x) {
        const std::size_t i = y * kImageSide + x;
        const float left = sharp[x == 0 ? i : i - 1];
        const float right = sharp[x + 1 == kImageSide ? i : i + 1];
        const float up = sharp[y == 0 ? i : i - kImageSide];
        const float down = sharp[y + 1 == kImageSide ? i : i + kImageSide];
        grey_[i] = sharp[i] * (1 - blur) + (left + right + up + down) * (blur / 4);
      }
    }
  }

  void develop(RandomNumbers& random, float contrast, float noise, std::uint8_t* out) const {
    for (std::size_t i = 0; i < kImagePixels; ++i) {
      const float value = grey_[i] * contrast + random.bell() * noise;
      out[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255.0f + 0.5f);
    }
  }

 private:
  static constexpr float kFar = 1e6f;
  std::array<float, kImagePixels> distance_;
  std::array<float, kImagePixels> grey_{};
};

// The style with this writer's own habits: each point a little off, always in the same direction.
DigitStyle in_hand_of(const Writer& writer, const DigitStyle& style, std::size_t style_number) {
  RandomNumbers habit(mix_seed(writer.seed, 3, style_number));
  DigitStyle own = style;
  for (Stroke& stroke : own.strokes) {
    for (Point& p : stroke.points) {
      p.x += habit.bell() * 0.035f;
      p.y += habit.bell() * 0.035f;
    }
  }
  return own;
}

void draw_sample(const Writer& writer, const DigitStyle& style, RandomNumbers& random,
                 std::uint8_t* out) {
  const Waviness waviness(random, 0.045f);
  const Placement place = make_placement(writer, random);
  const float pen = writer.pen * random.uniform(0.8f, 1.25f);
  Canvas canvas;
  for (const Stroke& stroke : style.strokes) {
    std::vector<Point> line = trace(stroke);
    for (Point& p : line) {
      const Point shift = waviness.shift_at(p);
      p = place.apply({p.x + shift.x, p.y + shift.y});
    }
    for (std::size_t i = 0; i + 1 < line.size(); ++i) canvas.draw(line[i], line[i + 1], pen + 1);
  }
  if (random.chance(0.15f)) {  // a slip of the pen
    const Point start{random.uniform(0, kSide), random.uniform(0, kSide)};
    canvas.draw(start, {start.x + random.bell() * 2, start.y + random.bell() * 2}, pen + 1);
  }
  canvas.ink(pen, random.uniform(0.0f, 0.5f));
  const float contrast = random.uniform(0.7f, 1.0f);
  canvas.develop(random, contrast, random.uniform(0.02f, 0.1f), out);
}

}  // namespace

DigitSet make_stroke_digits(std::size_t count, Split split, std::uint64_t seed) {
  const std::vector<DigitStyle> styles = all_digit_styles();
  const std::uint64_t group = split == Split::train ? 1 : 2;
  const std::size_t writers = split == Split::train ? kTrainWriters : kTestWriters;
  DigitSet digits;
  digits.pixels.resize(count * kImagePixels);
  digits.labels.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    RandomNumbers random(mix_seed(seed, 10 + group, i));
    const int digit = static_cast<int>(i % kClasses);
    const bool held_out = split == Split::test && random.chance(kHeldOutShare);
    std::vector<std::size_t> choices;
    for (std::size_t s = 0; s < styles.size(); ++s) {
      if (styles[s].digit == digit && styles[s].held_out == held_out) choices.push_back(s);
    }
    const Writer writer = make_writer(split, seed, random.below(writers));
    const std::size_t style = choices[random.below(choices.size())];
    draw_sample(writer, in_hand_of(writer, styles[style], style), random,
                &digits.pixels[i * kImagePixels]);
    digits.labels[i] = static_cast<std::uint8_t>(digit);
  }
  return digits;
}

bool write_image_sheet(const DigitSet& digits, std::size_t columns, std::size_t rows,
                       const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << columns * kImageSide << ' ' << rows * kImageSide << "\n255\n";
  for (std::size_t y = 0; y < rows * kImageSide; ++y) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t number = (y / kImageSide * columns + column) % digits.size();
      const std::uint8_t* line = digits.image(number) + (y % kImageSide) * kImageSide;
      file.write(reinterpret_cast<const char*>(line), static_cast<std::streamsize>(kImageSide));
    }
  }
  return static_cast<bool>(file.flush());
}

}  // namespace train_mlp
