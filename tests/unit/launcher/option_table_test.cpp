#include "launcher/core/option_table.h"

#include <catch2/catch.hpp>
#include <set>
#include <sstream>
#include <string>

#include "launcher/core/option_documents.h"

namespace {

using namespace ddp::launcher;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string without_backslashes(std::string text) {
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace

TEST_CASE("option table: no spelling belongs to two options") {
  std::set<std::string> seen;
  for (const OptionRow& row : option_table()) {
    for (const std::string& spelling : spellings_of(row)) {
      INFO(spelling);
      CHECK(seen.insert(spelling).second);
    }
  }
  CHECK(seen.count("--nproc-per-node") == 1);
  CHECK(seen.count("--nproc_per_node") == 1);
  CHECK(seen.count("-m") == 1);
}

TEST_CASE("option table: each option sets something, or is refused by name") {
  for (const OptionRow& row : option_table()) {
    INFO(row.name);
    const bool sets_nothing = std::holds_alternative<std::monostate>(row.target);
    CHECK(sets_nothing == (row.standing == Standing::refused));
    CHECK(sets_nothing == (row.group == OptionGroup::refused));
    CHECK((sets_nothing || *row.help != '\0'));
    CHECK(
        (sets_nothing || is_flag(row) == std::holds_alternative<bool GivenOptions::*>(row.target)));
    // A variable is torchrun's way; what torchrun doesn't have has none.
    CHECK((!row.variable || row.standing != Standing::own));
  }
}

TEST_CASE("option table: a difference is told") {
  for (const OptionRow& row : option_table()) {
    INFO(row.name);
    if (row.standing == Standing::better || row.standing == Standing::partly) {
      CHECK(*row.beside_torchrun != '\0');
    }
  }
}

TEST_CASE("option table: its variable is torchrun's") {
  for (const OptionRow& row : option_table()) {
    if (std::string(row.name) == "nproc-per-node") {
      CHECK(variable_of(row) == "PET_NPROC_PER_NODE");
    }
  }
}

TEST_CASE("option documents: all have every option") {
  const std::string help = help_text();
  const std::string page = without_backslashes(man_page("1.2"));
  const std::string completion = bash_completion();
  const std::string tables = torchrun_table() + own_options_table();
  for (const OptionRow& row : option_table()) {
    const std::string name = std::string("--") + row.name;
    INFO(name);
    CHECK(has(help, name));
    CHECK(has(page, name));
    CHECK(has(tables, "`" + name));
    CHECK(has(completion, name) == (row.standing != Standing::refused));
  }
}

TEST_CASE("option documents: no line of the man page is a request by accident") {
  std::istringstream lines(man_page("1.2"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || (line[0] != '.' && line[0] != '\'')) continue;
    const std::string request = line.substr(0, line.find(' '));
    INFO(line);
    CHECK(
        std::set<std::string>{".\\\"", ".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".nf", ".fi"}.count(
            request) == 1);
  }
}
