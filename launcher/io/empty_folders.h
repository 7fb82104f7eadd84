// Removes a tree of folders, never a file, without allocating: what is left of an agent that died.
#pragma once

namespace ddp::launcher {

// Folders that hold a file stay, and so do those above them. Doesn't follow links.
void remove_empty_folders(const char* root);

}  // namespace ddp::launcher
