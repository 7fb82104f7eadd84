// The file in which a PyTorch worker says why it failed (TORCHELASTIC_ERROR_FILE).
#pragma once

#include <string>
#include <string_view>

namespace ddp::launcher {

// The message in the text of such a file, in either of PyTorch's forms; empty if there is none.
// Whatever a worker wrote is taken: this never fails.
[[nodiscard]] std::string error_file_message(std::string_view text);

}  // namespace ddp::launcher
