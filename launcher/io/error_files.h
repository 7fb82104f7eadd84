// Where workers may leave an error.json of PyTorch's making: makes the folders, reads the files,
// cleans up.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "launcher/core/error_file.h"
#include "launcher/io/unique_fd.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

class ErrorFiles {
 public:
  // `places` are folders to try, best first; one where strangers could exchange our folder for
  // theirs is left out. `note`: gets the path of our folder before that is made, for the one who
  // cleans up if we are killed. Nothing is made before the first prepare().
  ErrorFiles(std::vector<std::string> places, const std::string& run_id, std::span<char> note = {});

  // The path for that worker, in a folder that exists; empty if it can't be made, as PyTorch wants
  // it then.
  [[nodiscard]] std::string prepare(const rendezvous::Placement& placement,
                                    rendezvous::LocalRank local_rank);

  // Removes what earlier rounds left empty, so that thousands of them add up to nothing.
  void tidy();

  // Removes the folders, and unless `keep` the files too. True if files are left.
  bool clean(bool keep);
  [[nodiscard]] const std::string& folder() const { return root_; }

 private:
  void make_root();
  bool make_root_in(const std::string& place);
  bool make_folder(const std::string& name) const;

  std::vector<std::string> places_;
  std::string run_name_;
  std::span<char> note_;
  std::string root_;  // <place>/ddplaunch_<16 digits> once made
  UniqueFd root_fd_;  // all below it is reached by this, wherever the name leads by now
  bool tried_ = false;
  std::string attempt_;           // of the newest round, below the root
  std::vector<std::string> old_;  // those of the rounds before, not tidied up yet
};

// PyTorch's file, so anything may be in it, or none be there.
[[nodiscard]] ErrorFile read_error_file(const std::string& path);

}  // namespace ddp::launcher
