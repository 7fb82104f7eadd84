// A data set of drawn digits, made from a seed: the same images on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace train_mlp {

inline constexpr std::size_t kImageSide = 16;
inline constexpr std::size_t kImagePixels = kImageSide * kImageSide;
inline constexpr std::size_t kClasses = 10;

// Grey images of kImageSide × kImageSide (0 = paper, 255 = ink) and the digit that each shows.
struct DigitSet {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  [[nodiscard]] std::size_t size() const { return labels.size(); }
  [[nodiscard]] const std::uint8_t* image(std::size_t i) const { return &pixels[i * kImagePixels]; }
};

// Who drew the images. The two groups share no writer, and some of the test's shapes are never seen
// in training, so that the test set measures generalisation.
enum class Split { train, test };

// Draws `count` images, as many of each digit as of the others. Sample i depends only on the seed,
// the split and i.
DigitSet make_stroke_digits(std::size_t count, Split split, std::uint64_t seed);

// Writes the first images as a sheet of `columns` × `rows` (portable grey map); false if it can't.
bool write_image_sheet(const DigitSet& digits, std::size_t columns, std::size_t rows,
                       const std::string& path);

}  // namespace train_mlp
