// Where workers may leave an error.json of PyTorch's making: makes the folders, reads the files,
// cleans up.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

class ErrorFiles {
 public:
  // `places` are folders to try, best first. Nothing is made before the first prepare().
  ErrorFiles(std::vector<std::string> places, const std::string& run_id);

  // The folder that all of it is in, made now if need be; empty if there is no place for it.
  const std::string& open();

  // The path for that worker, in a folder that exists; empty if it can't be made, as PyTorch wants
  // it then.
  [[nodiscard]] std::string prepare(const rendezvous::Placement& placement,
                                    rendezvous::LocalRank local_rank);

  // Removes the folders, and unless `keep` the files too. True if files are left.
  bool clean(bool keep);
  [[nodiscard]] const std::string& folder() const { return root_; }

 private:
  void make_root();
  bool make_folder(const std::string& folder);

  std::vector<std::string> places_;
  std::string run_name_;
  std::string root_;  // <place>/ddplaunch_XXXXXX once made
  bool tried_ = false;
  std::vector<std::string> folders_;  // made, parents first
};

// The message in an error.json, empty if there is none. PyTorch's file, so anything may be in it.
[[nodiscard]] std::string read_error_message(const std::string& path);

}  // namespace ddp::launcher
