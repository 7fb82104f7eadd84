// Where the value of each option comes from.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ddp::launcher {

class OptionSources {
 public:
  // `source`: "PET_NNODES", or as it was typed: "--nnodes=2".
  void note(std::string_view option, std::string source) {
    given_.insert_or_assign(std::string(option), std::move(source));
  }
  // Of an option by its name without dashes; empty: it wasn't given.
  [[nodiscard]] std::string of(std::string_view option) const {
    const auto found = given_.find(option);
    return found == given_.end() ? std::string() : found->second;
  }

 private:
  std::map<std::string, std::string, std::less<>> given_;
};

}  // namespace ddp::launcher
