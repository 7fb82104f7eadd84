// Every option once: its names, what it sets, what it means, how it compares with torchrun's. The
// parser, --help, the man page, the shell's completion and the tables of the READMEs are made of
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "launcher/core/given_options.h"

namespace ddp::launcher {

enum class OptionGroup : std::uint8_t {
  program,
  nodes,
  stopping,
  reports,
  without_effect,
  other,
  refused,
};

// Beside torchrun's option of that name.
enum class Standing : std::uint8_t {
  same,
  better,
  partly,   // some values are refused
  refused,  // recognised, so that it can be said
  own,      // torchrun has none
};

// A flag is a bool.
using OptionTarget = std::variant<std::monostate, std::string GivenOptions::*,
                                  std::optional<std::string> GivenOptions::*, bool GivenOptions::*>;

struct OptionRow {
  const char* name;  // hyphened, without dashes in front
  char letter = '\0';
  OptionTarget target = {};  // none: refused
  OptionGroup group = OptionGroup::other;
  const char* value = "";  // what --help calls its value; empty: a flag
  const char* help = "";
  Standing standing = Standing::own;
  const char* beside_torchrun = "";  // a sentence for the README, where the standing is not enough
  bool variable = false;             // PET_<NAME> gives a default
  const char* choices = "";          // separated by blanks; "FILE", "FOLDER": the shell completes
  const char* implied = nullptr;     // `--name` alone stands for `--name=implied`
  const char* harmless = nullptr;    // refused, but for this: it asks for what happens anyway
};

[[nodiscard]] std::span<const OptionRow> option_table();

[[nodiscard]] const char* title_of(OptionGroup group);

[[nodiscard]] inline bool is_flag(const OptionRow& row) {
  return *row.value == '\0';
}
// --nproc-per-node, --nproc_per_node, and -m where it has a letter.
[[nodiscard]] std::vector<std::string> spellings_of(const OptionRow& row);
// PET_NPROC_PER_NODE
[[nodiscard]] std::string variable_of(const OptionRow& row);
// "-m, --module", "    --role NAME", "    --pass-local-rank[=NAME]"
[[nodiscard]] std::string synopsis_of(const OptionRow& row);

}  // namespace ddp::launcher
