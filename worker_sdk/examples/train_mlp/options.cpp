#include "options.h"

#include <charconv>
#include <cstdint>
#include <functional>
#include <system_error>

namespace train_mlp {
namespace {

struct OptionRow {
  std::string name;
  std::string meaning;
  std::string wanted;  // what the value has to be
  std::function<bool(const std::string& value, Options& options)> read;
};

template <typename Number>
bool read_number(const std::string& text, Number low, Number high, Number& out) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  // Written so that a NaN is refused too.
  if (error != std::errc() || stopped != end || !(value >= low && value <= high)) return false;
  out = value;
  return true;
}

bool read_name(const std::string& text, std::string& out) {
  out = text;
  return !text.empty();
}

std::vector<OptionRow> option_rows() {
  return {
      {"--epochs", "passes over the training data", "a whole number from 1 to 10000",
       [](const auto& v, Options& o) { return read_number(v, 1, 10000, o.plan.epochs); }},
      {"--batch-size", "samples in a step, of all ranks together",
       "a whole number from 1 to 1000000",
       [](const auto& v, Options& o) {
         return read_number<std::size_t>(v, 1, 1000000, o.plan.batch_size);
       }},
      {"--lr", "learning rate at the start; falls to 0", "a number from 0 to 10",
       [](const auto& v, Options& o) { return read_number(v, 0.0f, 10.0f, o.plan.learning_rate); }},
      {"--momentum", "of the gradient descent", "a number from 0 to 1",
       [](const auto& v, Options& o) { return read_number(v, 0.0f, 1.0f, o.plan.momentum); }},
      {"--hidden", "width of the hidden layer", "a whole number from 1 to 8192",
       [](const auto& v, Options& o) { return read_number<std::size_t>(v, 1, 8192, o.hidden); }},
      {"--samples", "images to train on", "a whole number from 10 to 1000000",
       [](const auto& v, Options& o) {
         return read_number<std::size_t>(v, 10, 1000000, o.samples);
       }},
      {"--seed", "of the data, the weights and the order", "a whole number from 0 to 2147483647",
       [](const auto& v, Options& o) {
         return read_number<std::uint64_t>(v, 0, 2147483647, o.plan.seed);
       }},
      {"--accumulate", "parts that each rank computes for a step, one after the other",
       "a whole number from 1 to 1024",
       [](const auto& v, Options& o) { return read_number(v, 1, 1024, o.plan.accumulate); }},
      {"--dump", "write the trained parameters there, as 32-bit floats", "a file name",
       [](const auto& v, Options& o) { return read_name(v, o.dump_file); }},
      {"--images", "write a sheet of training images there, as a PGM picture", "a file name",
       [](const auto& v, Options& o) { return read_name(v, o.sheet_file); }},
  };
}

}  // namespace

bool Options::trains_as_stated() const {
  const Options stated;
  return plan.epochs == stated.plan.epochs && plan.batch_size == stated.plan.batch_size &&
         plan.learning_rate == stated.plan.learning_rate && plan.momentum == stated.plan.momentum &&
         hidden == stated.hidden && samples == stated.samples && plan.seed == stated.plan.seed;
}

std::variant<Options, UsageError> parse_options(const std::vector<std::string>& arguments) {
  const std::vector<OptionRow> rows = option_rows();
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    const OptionRow* row = nullptr;
    for (const OptionRow& candidate : rows) {
      if (candidate.name == name) row = &candidate;
    }
    if (row == nullptr) {
      return UsageError{"there is no option \"" + arguments[i] + "\"; --help lists them"};
    }
    std::string value;
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return UsageError{name + " wants " + row->wanted + " after it"};
    }
    if (!row->read(value, options)) {
      return UsageError{name + " wants " + row->wanted + ", not \"" + value + "\""};
    }
  }
  return options;
}

std::string usage_text() {
  std::string text =
      "usage: train_mlp [options]\n"
      "Trains a multilayer perceptron on drawn digits with as many ranks as the launcher started,\n"
      "or alone: ddplaunch --standalone --nproc_per_node=2 train_mlp\n\n";
  for (const OptionRow& row : option_rows()) {
    text += "  " + row.name + std::string(14 - row.name.size(), ' ') + row.meaning + " (" +
            row.wanted + ")\n";
  }
  return text;
}

}  // namespace train_mlp
