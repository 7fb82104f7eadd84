// What people read of the options, made of the table: --help, the man page, the shell's completion,
// the tables of the READMEs.
#pragma once

#include <string>
#include <string_view>

namespace ddp::launcher {

[[nodiscard]] std::string help_text();
[[nodiscard]] std::string man_page(std::string_view version);
[[nodiscard]] std::string bash_completion();

// Markdown: each of torchrun's options, with what becomes of it here.
[[nodiscard]] std::string torchrun_table();
// Markdown: each option that torchrun doesn't have.
[[nodiscard]] std::string own_options_table();

}  // namespace ddp::launcher
