#include "launcher/io/error_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "launcher/core/error_file.h"
#include "launcher/core/worker_plan.h"
#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

constexpr std::size_t kMaxFileSize = 1 << 20;
constexpr std::size_t kMaxNameSize = 64;
constexpr const char* kFileName = "/error.json";

// One path component, whatever the user calls the run.
std::string sanitise(const std::string& name) {
  std::string result;
  for (const char c : name.substr(0, kMaxNameSize)) {
    const bool harmless = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    result += harmless ? c : '_';
  }
  return result.empty() ? "none" : result;
}

// The folders that lead to `path`, from below `root` on.
std::vector<std::string> parents(const std::string& path, const std::string& root) {
  std::vector<std::string> result;
  for (std::size_t slash = path.find('/', root.size() + 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    result.push_back(path.substr(0, slash));
  }
  return result;
}

std::string read_all(const std::string& path) {
  // A worker can put anything in this place: never follow it elsewhere, never block on a FIFO.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_size <= 0 || static_cast<std::size_t>(info.st_size) > kMaxFileSize) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t length = ::read(fd.get(), text.data(), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

}  // namespace

ErrorFiles::ErrorFiles(std::vector<std::string> places, const std::string& run_id)
    : places_(std::move(places)), run_name_(sanitise(run_id)) {}

std::string ErrorFiles::prepare(const rendezvous::Placement& placement,
                                rendezvous::LocalRank local_rank) {
  if (open().empty()) return {};
  std::string path = error_file_path(root_ + '/' + run_name_, placement, local_rank);
  const std::string folder = path.substr(0, path.rfind('/'));
  // The outer ones are there if another rank has been here.
  if (!make_folder(folder)) {
    for (const std::string& parent : parents(folder, root_)) make_folder(parent);
    if (!make_folder(folder)) return {};
  }
  return path;
}

const std::string& ErrorFiles::open() {
  if (!std::exchange(tried_, true)) make_root();
  return root_;
}

void ErrorFiles::make_root() {
  for (const std::string& place : places_) {
    std::string name = place + "/ddplaunch_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) continue;
    root_ = name;
    return;
  }
}

bool ErrorFiles::make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) return errno == EEXIST;
  folders_.push_back(folder);
  return true;
}

bool ErrorFiles::clean(bool keep) {
  if (root_.empty()) return false;
  bool left = false;
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    if (::rmdir(folder->c_str()) == 0) continue;
    left = true;
    if (keep) continue;
    ::unlink((*folder + kFileName).c_str());
    left = ::rmdir(folder->c_str()) != 0;
  }
  return ::rmdir(root_.c_str()) != 0 && left;
}

std::string read_error_message(const std::string& path) {
  if (path.empty()) return {};
  const std::string text = read_all(path);
  if (text.empty()) return {};
  return error_file_message(text);
}

}  // namespace ddp::launcher
