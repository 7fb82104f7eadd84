#include "launcher/io/empty_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

constexpr int kDeepest = 8;

void remove_from(int parent, const char* name, int depth) {
  if (depth > kDeepest) return;
  {
    const UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return;
    alignas(dirent64) std::array<char, 2048> buffer;
    for (;;) {
      const long length = ::syscall(SYS_getdents64, fd.get(), buffer.data(), buffer.size());
      if (length <= 0) break;
      for (long at = 0; at < length;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
        const std::string_view entry_name = entry->d_name;
        if (entry->d_type == DT_DIR && entry_name != "." && entry_name != "..") {
          remove_from(fd.get(), entry->d_name, depth + 1);
        }
        at += entry->d_reclen;
      }
    }
  }
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

void remove_empty_folders(const char* root) {
  remove_from(AT_FDCWD, root, 0);
}

}  // namespace ddp::launcher
