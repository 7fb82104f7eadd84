// Which of a host's GPUs a process may use: CUDA_VISIBLE_DEVICES, read as the CUDA driver reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddp::sdk {

struct VisibleDevices {
  int count = 0;
  std::string reason;  // why there is none, one clause; empty if there is one
};

// `uuids` are those of the host's GPUs ("GPU-…"), in any order. `variable` is the value of
// CUDA_VISIBLE_DEVICES, nothing if it is not set. As in the driver: an empty value hides all; the
// list ends at the first entry that names no GPU, -1 for one; a GPU named twice hides all; a UUID
// may be cut short as long as it fits one GPU only; of MIG instances a process gets one.
[[nodiscard]] VisibleDevices count_visible_devices(std::optional<std::string_view> variable,
                                                   const std::vector<std::string>& uuids);

}  // namespace ddp::sdk
