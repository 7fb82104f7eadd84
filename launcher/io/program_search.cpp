#include "launcher/io/program_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "launcher/io/unique_fd.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {
namespace {

constexpr std::string_view kDefaultPath = "/bin:/usr/bin";  // as the C library's without PATH

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

// Of a file that exists and yet was not found by the kernel.
std::string explain_missing_helper(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> start{};
  const ssize_t length = file.valid() ? ::read(file.get(), start.data(), start.size()) : 0;
  std::string_view line(start.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  if (line.substr(0, 2) != "#!") return " is there, but the loader that it needs is not";
  line = line.substr(2, std::min(line.find('\n'), line.size()) - 2);
  const bool carriage_return = !line.empty() && line.back() == '\r';
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  line = line.substr(0, line.find_first_of(" \t\r"));
  std::string text = " is there, but the interpreter that its first line names (";
  text += std::string(line) + ") is not";
  if (carriage_return) {
    text += ": the line ends in a carriage return, save the file with Unix line ends (dos2unix)";
  }
  return text;
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
      return {kNotExecutable, candidates.front() + explain_missing_helper(candidates.front())};
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
