#include "launcher/io/program_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {
namespace {

constexpr std::string_view kDefaultPath = "/bin:/usr/bin";  // as the C library's without PATH

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

}  // namespace

std::vector<std::string> find_program(const std::string& name, const Environment& environment) {
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return {name};
  const auto variable = environment.find("PATH");
  std::string_view path = variable == environment.end() ? kDefaultPath : variable->second;
  std::vector<std::string> found;
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    std::string candidate = folder.empty() ? "./" : std::string(folder) + '/';
    candidate += name;
    if (is_file(candidate)) found.push_back(std::move(candidate));
    if (colon == std::string_view::npos) return found;
    path.remove_prefix(colon + 1);
  }
}

SpawnRefusal explain_exec_error(const std::string& name, const std::vector<std::string>& candidates,
                                int error) {
  using namespace rendezvous::exit_code;
  const std::string quoted = "\"" + name + "\"";
  const bool has_slash = name.find('/') != std::string::npos;
  if (error == ENOENT || error == ENOTDIR) {
    if (!candidates.empty() && is_file(candidates.front())) {
      return {kNotFound, candidates.front() +
                             " is there, but the interpreter that its first line names, or "
                             "the loader that it needs, is not"};
    }
    if (has_slash) return {kNotFound, "there is no program " + quoted};
    std::string reason = "there is no program " + quoted + " in PATH";
    if (is_file(name)) reason += "; there is one in this folder: say ./" + name;
    return {kNotFound, reason};
  }
  const std::string path = candidates.empty() ? name : candidates.front();
  struct stat info {};
  if (error == EACCES && ::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return {kNotExecutable, path + " is a folder, not a program"};
    if (::access(path.c_str(), X_OK) != 0) {
      return {kNotExecutable, path + " may not be executed: try chmod +x " + path};
    }
  }
  if (error == ENOEXEC) {
    return {kNotExecutable,
            path +
                " is no program that this system can run: a script needs a first line such as "
                "#!/bin/sh"};
  }
  return {kNotExecutable,
          path + " could not be started: " + std::generic_category().message(error)};
}

}  // namespace ddp::launcher
