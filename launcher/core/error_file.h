// The file in which a PyTorch worker says why it failed (TORCHELASTIC_ERROR_FILE).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace ddp::launcher {

struct ErrorFile {
  std::string message;  // empty if there is none
  std::optional<std::chrono::microseconds> failed_at;
};

// What is in the text of such a file, in either of PyTorch's forms. Whatever a worker wrote is
// taken: this never fails.
[[nodiscard]] ErrorFile parse_error_file(std::string_view text);

}  // namespace ddp::launcher
