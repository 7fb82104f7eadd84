// What is made of the table of options. ddp_documents --man, --bash: to stdout. --write ROOT: the
// tables of the READMEs in the tree at ROOT; --check ROOT: 1 where one of them is out of date.
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/core/option_documents.h"

namespace {

using namespace ddp::launcher;

struct Document {
  std::string path;
  std::string text;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Part {
  const char* path;
  std::string name;
  std::string text;
};

// What is between "<!-- NAME: … -->" and "<!-- end of NAME -->".
std::string with_part(std::string document, const std::string& path, const Part& part) {
  const std::size_t begin = document.find("<!-- " + part.name + ":");
  const std::size_t first = begin == std::string::npos ? begin : document.find('\n', begin);
  const std::size_t end = document.find("<!-- end of " + part.name + " -->");
  if (first == std::string::npos || end == std::string::npos || end < first) {
    throw std::runtime_error(path + " has no place for: " + part.name);
  }
  return document.replace(first + 1, end - first - 1, "\n" + part.text + "\n");
}

std::vector<Document> documents(const std::string& root) {
  std::vector<Document> all;
  const Part parts[] = {{"/README.md", "torchrun's options", torchrun_table()},
                        {"/launcher/README.md", "own options", own_options_table()}};
  for (const Part& part : parts) {
    const std::string path = root + part.path;
    all.push_back({path, with_part(read_file(path), path, part)});
  }
  return all;
}

int run(std::string_view what, const std::string& root) {
  int differing = 0;
  for (const Document& document : documents(root)) {
    if (what == "--write") {
      std::ofstream file(document.path, std::ios::binary);
      if (!(file << document.text).flush())
        throw std::runtime_error("cannot write " + document.path);
    } else if (read_file(document.path) != document.text) {
      std::cerr << document.path << " differs from the table of options: ddp_documents --write\n";
      differing = 1;
    }
  }
  return differing;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (argc == 2 && (what == "--man" || what == "--bash")) {
    std::cout << (what == "--man" ? man_page(DDP_VERSION) : bash_completion()) << std::flush;
    return std::cout ? 0 : 1;
  }
  if (argc != 3 || (what != "--write" && what != "--check")) {
    std::cerr << "usage: ddp_documents --man|--bash|--write ROOT|--check ROOT\n";
    return 2;
  }
  try {
    return run(what, argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "ddp_documents: " << error.what() << "\n";
    return 1;
  }
}
