#include "launcher/io/error_files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "launcher/core/error_file.h"
#include "launcher/core/worker_plan.h"
#include "launcher/io/empty_folders.h"
#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

constexpr std::size_t kMaxFileSize = 1 << 20;
constexpr std::size_t kMaxNameSize = 64;
constexpr const char* kFileName = "error.json";

// One path component, whatever the user calls the run.
std::string sanitise(const std::string& name) {
  std::string result;
  for (const char c : name.substr(0, kMaxNameSize)) {
    const bool harmless = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    result += harmless ? c : '_';
  }
  return result.empty() ? "none" : result;
}

std::string read_all(const std::string& path) {
  // A worker can put anything in this place: never follow it elsewhere, never block on a FIFO.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_uid != ::geteuid()) return {};
  if (info.st_size <= 0 || static_cast<std::size_t>(info.st_size) > kMaxFileSize) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t length = ::read(fd.get(), text.data(), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

// Whoever owns a folder, and in one without the sticky bit whoever may write to it, can rename what
// others have in it. A group that may write is the user's own doing.
bool may_be_ours(const struct stat& info) {
  const bool trusted = info.st_uid == 0 || info.st_uid == ::geteuid();
  const bool open_to_all = (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
  return trusted && !open_to_all;
}

std::string random_digits() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) return {};
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(bits));
  return digits.data();
}

}  // namespace

ErrorFiles::ErrorFiles(std::vector<std::string> places, const std::string& run_id,
                       std::span<char> note)
    : places_(std::move(places)), run_name_(sanitise(run_id)), note_(note) {}

std::string ErrorFiles::prepare(const rendezvous::Placement& placement,
                                rendezvous::LocalRank local_rank) {
  if (!std::exchange(tried_, true)) make_root();
  if (root_.empty()) return {};
  std::string path = error_file_path(run_name_, placement, local_rank);
  const std::string folder = path.substr(0, path.rfind('/'));
  std::string attempt = folder.substr(0, folder.rfind('/'));
  if (attempt != attempt_) {
    if (!make_folder(run_name_) || !make_folder(attempt)) return {};
    if (!attempt_.empty()) old_.push_back(std::move(attempt_));
    attempt_ = std::move(attempt);
  }
  return make_folder(folder) ? root_ + '/' + path : std::string();
}

void ErrorFiles::make_root() {
  for (const std::string& place : places_) {
    if (make_root_in(place)) return;
  }
}

bool ErrorFiles::make_root_in(const std::string& place) {
  struct stat info {};
  const UniqueFd place_fd(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place_fd.valid() || ::fstat(place_fd.get(), &info) != 0 || !may_be_ours(info)) return false;
  const std::string name = "ddplaunch_" + random_digits();
  const std::string path = place + '/' + name;
  const bool noted = path.size() < note_.size();
  if (noted) std::copy_n(path.c_str(), path.size() + 1, note_.begin());
  if (::mkdirat(place_fd.get(), name.c_str(), 0700) == 0) {
    root_fd_.reset(
        ::openat(place_fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (root_fd_.valid()) {
      root_ = path;
      return true;
    }
    ::unlinkat(place_fd.get(), name.c_str(), AT_REMOVEDIR);
  }
  if (noted) note_.front() = '\0';
  return false;
}

bool ErrorFiles::make_folder(const std::string& name) const {
  return ::mkdirat(root_fd_.get(), name.c_str(), 0700) == 0 || errno == EEXIST;
}

void ErrorFiles::tidy() {
  for (const std::string& attempt : old_) remove_empty_folders(root_fd_.get(), attempt.c_str());
  old_.clear();
}

bool ErrorFiles::clean(bool keep) {
  if (root_.empty()) return false;
  const bool gone =
      remove_empty_folders(root_fd_.get(), run_name_.c_str(), keep ? nullptr : kFileName);
  ::rmdir(root_.c_str());
  return !gone;
}

ErrorFile read_error_file(const std::string& path) {
  if (path.empty()) return {};
  const std::string text = read_all(path);
  return text.empty() ? ErrorFile{} : parse_error_file(text);
}

}  // namespace ddp::launcher
