// A ddp_store_v1 for tests: one file per key in a folder that all ranks share.
#pragma once

#include <filesystem>
#include <string>

#include <ddp/backend.h>

namespace ddp::test {

// A folder under the temporary folder, removed with the object. Only the process that made it
// removes it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int owner_;
};

class FileStore {
 public:
  // `generation` separates the groups that one test makes one after the other.
  explicit FileStore(std::filesystem::path folder, int generation = 0);
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  [[nodiscard]] const ddp_store_v1* table() const { return &table_; }
  [[nodiscard]] bool has(const std::string& key) const;

 private:
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
  static ddp_status set(void* self, const char* key, const void* value, size_t length,
                        ddp_error_v1* error);
  static ddp_status get(void* self, const char* key, int64_t timeout_ms,
                        void (*sink)(void* context, const void* data, size_t length), void* context,
                        ddp_error_v1* error);

  std::filesystem::path folder_;
  int generation_;
  ddp_store_v1 table_;
};

}  // namespace ddp::test
