#include "launcher/io/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

// In the same folder, so that it can be renamed. Nobody else's: another agent may be at it too.
std::string name_while_written(const std::string& path) {
  return path + "." + std::to_string(::getpid()) + ".tmp";
}

UniqueFd make_file(const std::string& name) {
  ::unlink(name.c_str());
  return UniqueFd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::optional<std::string> objection_to_report(const std::string& path) {
  const std::string folder = folder_of(path);
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return "there is no folder " + folder + " for it";
  if (!S_ISDIR(info.st_mode)) return folder + " is no folder";
  // It would be replaced: what is no file of its own is more than a report is worth.
  if (::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return S_ISLNK(info.st_mode) ? path + " is a symbolic link: name the file itself"
                                 : path + " is there already, and it is no file";
  }
  const std::string name = name_while_written(path);
  if (!make_file(name).valid()) return "no file can be written in " + folder + ": " + reason(errno);
  ::unlink(name.c_str());
  // Whoever finds one later shall not take it for this job's, should we be killed before the end.
  ::unlink(path.c_str());
  return std::nullopt;
}

std::optional<std::string> write_report(const std::string& path, const std::string& text) {
  const std::string name = name_while_written(path);
  const UniqueFd file = make_file(name);
  if (file.valid() && write_all(file.get(), text) && std::rename(name.c_str(), path.c_str()) == 0) {
    return std::nullopt;
  }
  const int error = errno;
  if (file.valid()) ::unlink(name.c_str());
  return "the report could not be written to " + path + ": " + reason(error);
}

}  // namespace ddp::launcher
