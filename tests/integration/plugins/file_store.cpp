#include "tests/integration/plugins/file_store.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "tests/integration/plugins/rank_processes.h"

namespace ddp::test {

ScratchFolder::ScratchFolder() : owner_(getpid()) {
  std::string name = (std::filesystem::temp_directory_path() / "ddp-plugins-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::system_category(), "mkdtemp");
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
}

FileStore::FileStore(std::filesystem::path folder, int generation)
    : folder_(std::move(folder)), generation_(generation), table_{sizeof table_, this, set, get} {}

bool FileStore::has(const std::string& key) const {
  return std::filesystem::exists(file_of(key));
}

std::filesystem::path FileStore::file_of(const std::string& key) const {
  std::string name = "g" + std::to_string(generation_) + "_";
  for (const char letter : key) name += letter == '/' ? '+' : letter;
  return folder_ / name;
}

ddp_status FileStore::set(void* self, const char* key, const void* value, size_t length,
                          ddp_error_v1* /*error*/) {
  const std::filesystem::path file = static_cast<FileStore*>(self)->file_of(key);
  const std::filesystem::path half = file.string() + "." + std::to_string(getpid());
  std::ofstream(half, std::ios::binary)
      .write(static_cast<const char*>(value), static_cast<std::streamsize>(length));
  std::filesystem::rename(half, file);  // A reader sees all of it or nothing.
  return DDP_OK;
}

ddp_status FileStore::get(void* self, const char* key, int64_t timeout_ms,
                          void (*sink)(void* context, const void* data, size_t length),
                          void* context, ddp_error_v1* error) {
  const FileStore& store = *static_cast<FileStore*>(self);
  if (!wait_until([&] { return store.has(key); }, std::chrono::milliseconds(timeout_ms))) {
    std::snprintf(error->message, sizeof error->message, "no key '%s' within %lld ms", key,
                  static_cast<long long>(timeout_ms));
    return DDP_TIMEOUT;
  }
  std::ifstream file(store.file_of(key), std::ios::binary);
  const std::vector<char> value{std::istreambuf_iterator<char>(file), {}};
  sink(context, value.data(), value.size());
  return DDP_OK;
}

}  // namespace ddp::test
