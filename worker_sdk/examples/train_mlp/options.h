// The command line of train_mlp.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "training_plan.h"

namespace train_mlp {

struct Options {
  TrainingPlan plan;
  std::size_t hidden = 192;
  std::size_t samples = 20000;
  std::string dump_file;   // where to write the parameters at the end; empty: nowhere
  std::string sheet_file;  // where to write a picture of some images; empty: nowhere
  bool help = false;

  // The stated accuracy is promised for these settings only.
  [[nodiscard]] bool trains_as_stated() const;
};

struct UsageError {
  std::string message;
};

// `arguments` without the program's name.
std::variant<Options, UsageError> parse_options(const std::vector<std::string>& arguments);

std::string usage_text();

}  // namespace train_mlp
