#include "launcher/io/empty_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

constexpr int kDeepest = 8;

bool is_own(std::string_view name) {
  return name == "." || name == "..";
}

bool remove_from(int parent, const char* name, const char* file, int depth) {
  if (depth > kDeepest) return false;
  // Those of hundreds of ranks are, nearly all: no need to look into them.
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return true;
  {
    const UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return errno == ENOENT;
    alignas(dirent64) std::array<char, 2048> buffer;
    for (;;) {
      const long length = ::syscall(SYS_getdents64, fd.get(), buffer.data(), buffer.size());
      if (length <= 0) break;
      for (long at = 0; at < length;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
        const bool folder = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        if (folder && !is_own(entry->d_name)) {
          remove_from(fd.get(), entry->d_name, file, depth + 1);
        }
        if (entry->d_type != DT_DIR && file != nullptr && std::string_view(entry->d_name) == file) {
          ::unlinkat(fd.get(), entry->d_name, 0);
        }
        at += entry->d_reclen;
      }
    }
  }
  return ::unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

}  // namespace

bool remove_empty_folders(int parent, const char* root, const char* file) {
  return remove_from(parent, root, file, 0);
}

}  // namespace ddp::launcher
