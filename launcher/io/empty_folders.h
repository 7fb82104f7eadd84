// Removes a tree of folders, without allocating: what is left of an agent that died.
#pragma once

namespace ddp::launcher {

// Files stay, but for those that are called `file`; folders that hold a file stay, and so do those
// above them. `root` is relative to the folder `parent` (AT_FDCWD: ours). Doesn't follow links.
// True if nothing stayed.
bool remove_empty_folders(int parent, const char* root, const char* file = nullptr);

}  // namespace ddp::launcher
