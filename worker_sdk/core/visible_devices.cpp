#include "worker_sdk/core/visible_devices.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>

namespace ddp::sdk {
namespace {

using std::string_view;

constexpr string_view kGpuPrefix = "GPU-";
constexpr string_view kMigPrefix = "MIG-";
constexpr int kNoDevice = -1;

bool starts_with(string_view text, string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::vector<string_view> split(string_view list) {
  std::vector<string_view> entries;
  for (;;) {
    const std::size_t comma = list.find(',');
    entries.push_back(list.substr(0, comma));
    if (comma == string_view::npos) return entries;
    list.remove_prefix(comma + 1);
  }
}

// The driver reads the number at the front and ignores what follows it: "1gpu" is 1.
int device_of_ordinal(string_view entry, std::size_t devices) {
  while (!entry.empty() && std::isspace(static_cast<unsigned char>(entry.front())) != 0) {
    entry.remove_prefix(1);
  }
  if (!entry.empty() && entry.front() == '+') entry.remove_prefix(1);
  int ordinal = kNoDevice;
  const auto parsed = std::from_chars(entry.data(), entry.data() + entry.size(), ordinal);
  const bool exists =
      parsed.ec == std::errc() && ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices;
  return exists ? ordinal : kNoDevice;
}

int device_of_uuid(string_view entry, const std::vector<std::string>& uuids) {
  if (!starts_with(entry, kGpuPrefix)) return kNoDevice;
  int found = kNoDevice;
  for (std::size_t index = 0; index < uuids.size(); ++index) {
    if (!starts_with(uuids[index], entry)) continue;
    if (found != kNoDevice) return kNoDevice;
    found = static_cast<int>(index);
  }
  return found;
}

VisibleDevices none(string_view variable, const std::string& why) {
  return {0, "CUDA_VISIBLE_DEVICES=" + std::string(variable) + " " + why};
}

std::string gpus(std::size_t count) {
  return count == 1 ? "one GPU (0)"
                    : std::to_string(count) + " GPUs (0 to " + std::to_string(count - 1) + ")";
}

}  // namespace

VisibleDevices count_visible_devices(std::optional<string_view> variable,
                                     const std::vector<std::string>& uuids) {
  if (uuids.empty()) return {0, "the NVIDIA driver shows no GPU"};
  if (!variable) return {static_cast<int>(uuids.size()), {}};
  if (variable->empty()) return none(*variable, "(set, but empty) hides every GPU");
  if (starts_with(*variable, kMigPrefix)) return {1, {}};
  const bool by_uuid = starts_with(*variable, kGpuPrefix);
  std::vector<int> chosen;
  for (const string_view entry : split(*variable)) {
    const int device =
        by_uuid ? device_of_uuid(entry, uuids) : device_of_ordinal(entry, uuids.size());
    if (device == kNoDevice) break;
    if (std::find(chosen.begin(), chosen.end(), device) != chosen.end()) {
      return none(*variable, "names a GPU twice, which hides every GPU");
    }
    chosen.push_back(device);
  }
  if (chosen.empty())
    return none(*variable, "begins with no GPU of this host, which has " + gpus(uuids.size()));
  return {static_cast<int>(chosen.size()), {}};
}

}  // namespace ddp::sdk
