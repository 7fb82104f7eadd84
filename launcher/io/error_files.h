// Where workers may leave an error.json of PyTorch's making: makes the folders, reads the files,
// cleans up.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

class ErrorFiles {
 public:
  // `temp_folder` is $TMPDIR or /tmp. Nothing is made before the first prepare().
  ErrorFiles(std::string temp_folder, const std::string& run_id);

  // The path for that worker, in a folder that exists; empty if it can't be made, as PyTorch wants
  // it then.
  [[nodiscard]] std::string prepare(const rendezvous::Placement& placement,
                                    rendezvous::LocalRank local_rank);

  // Removes the folders, and unless `keep` the files too. True if files are left.
  bool clean(bool keep);
  [[nodiscard]] const std::string& folder() const { return root_; }

 private:
  std::string temp_folder_;
  std::string run_name_;
  std::string root_;  // <temp_folder>/ddplaunch_XXXXXX once made
  bool tried_ = false;
  std::vector<std::string> folders_;  // made, parents first
  std::vector<std::string> files_;    // that may be there
};

// The message in an error.json, empty if there is none. PyTorch's file, so anything may be in it.
[[nodiscard]] std::string read_error_message(const std::string& path);

}  // namespace ddp::launcher
