#include "launcher/core/command_line.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "launcher/core/option_documents.h"
#include "launcher/core/option_scanner.h"
#include "launcher/core/option_table.h"

// The table holds what the options are called, CLI11 stores their values; the scanner knows the
// grammar, because CLI11's differs from argparse's (prefixes, empty values).

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::Result;

struct GivenOption {
  const OptionRow* row;
  std::string value;   // empty for a flag
  std::string source;  // its variable, or as it was typed
};

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

std::vector<OptionSpec> specs_of(std::span<const OptionRow> table) {
  std::vector<OptionSpec> specs;
  for (const OptionRow& row : table) {
    OptionSpec spec;
    spec.names = spellings_of(row);
    spec.takes_value = !is_flag(row);
    spec.ends_scan = row.target == OptionTarget(&GivenOptions::help) ||
                     row.target == OptionTarget(&GivenOptions::version);
    if (row.implied != nullptr) {
      spec.implied = row.implied;
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// PET_NPROC_PER_NODE=4 stands for --nproc-per-node 4, PET_STANDALONE=1 for --standalone.
Result<std::vector<GivenOption>> defaults_from(const Environment& environment) {
  std::vector<GivenOption> defaults;
  for (const OptionRow& row : option_table()) {
    const std::string variable = variable_of(row);
    const auto found = environment.find(variable);
    if (!row.variable || found == environment.end()) {
      continue;
    }
    const std::string& text = found->second;
    if (!is_flag(row)) {
      defaults.push_back({&row, text, variable});
    } else if (!is_number(text)) {
      return Error{variable + " takes 0 or 1, not \"" + text + "\""};
    } else if (text.find_first_not_of('0') != std::string::npos) {
      defaults.push_back({&row, "", variable});
    }
  }
  return defaults;
}

std::optional<std::string> refusal_in(const std::vector<GivenOption>& options) {
  std::map<const OptionRow*, const GivenOption*> last;
  for (const GivenOption& option : options) {
    if (option.row->standing == Standing::refused) {
      last[option.row] = &option;
    }
  }
  for (const OptionRow& row : option_table()) {
    const auto found = last.find(&row);
    if (found == last.end()) {
      continue;
    }
    if (row.harmless == nullptr || found->second->value != row.harmless) {
      return std::string("--") + row.name + " is not in this version";
    }
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser() {
    app_.set_help_flag();
    for (const OptionRow& row : option_table()) {
      declare(row);
    }
  }

  CommandLine parse(const std::vector<std::string>& arguments, const Environment& environment,
                    const HostFacts& host) {
    Result<std::vector<GivenOption>> given = defaults_from(environment);
    if (!given) {
      return UsageError{given.error().message};
    }
    const Result<ScannedLine> line = scan_options(specs_of(option_table()), arguments);
    if (!line) {
      return UsageError{line.error().message};
    }
    std::vector<GivenOption> options = std::move(given).value();
    for (const ScannedOption& option : line.value().options) {
      const OptionRow& row = option_table()[option.spec];
      std::string typed = std::string("--") + row.name;
      options.push_back(
          {&row, option.value, is_flag(row) ? std::move(typed) : typed + "=" + option.value});
    }
    if (const auto trouble = store(options)) {
      return UsageError{*trouble};
    }
    return finish(options, line.value(), environment, host);
  }

 private:
  void declare(const OptionRow& row) {
    const std::string name = std::string("--") + row.name;
    std::visit(Overloaded{[](std::monostate) {},
                          [&](bool GivenOptions::*member) {
                            app_.add_flag(name, given_.*member)->take_last();
                          },
                          [&](auto member) { app_.add_option(name, given_.*member)->take_last(); }},
               row.target);
  }

  std::optional<std::string> store(const std::vector<GivenOption>& options) {
    std::vector<std::string> tokens;
    for (const GivenOption& option : options) {
      sources_.note(option.row->name, option.source);
      if (std::holds_alternative<std::monostate>(option.row->target)) {
        continue;
      }
      tokens.push_back(std::string("--") + option.row->name);
      if (!is_flag(*option.row)) {
        tokens.push_back(option.value);
      }
    }
    std::reverse(tokens.begin(), tokens.end());  // as CLI11 wants them
    try {
      app_.parse(tokens);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return std::nullopt;
  }

  CommandLine finish(const std::vector<GivenOption>& options, const ScannedLine& line,
                     const Environment& environment, const HostFacts& host) {
    if (given_.help) {
      return ShowText{help_text()};
    }
    if (given_.version) {
      return ShowText{"ddplaunch " DDP_VERSION "\n"};
    }
    if (given_.print_completion) {
      if (*given_.print_completion != "bash") {
        return UsageError{"--print-completion takes bash, not \"" + *given_.print_completion +
                          "\""};
      }
      return ShowText{bash_completion()};
    }
    if (const auto refusal = refusal_in(options)) {
      return UsageError{*refusal};
    }
    if (!line.program) {
      return UsageError{
          "no program given; usage: ddplaunch [options] PROGRAM [arguments], see --help"};
    }
    given_.program = *line.program;
    given_.arguments = line.arguments;
    Result<LaunchConfig> config = make_config(given_, environment, host);
    if (!config) {
      return UsageError{with_variable(config.error().message)};
    }
    if (given_.dry_run) {
      return ShowPlan{std::move(config).value(), std::move(sources_)};
    }
    return std::move(config).value();
  }

  // A value that nobody typed: the message names the variable that it is in.
  std::string with_variable(const std::string& message) const {
    for (const OptionRow& row : option_table()) {
      const std::string name = std::string("--") + row.name;
      const std::string source = sources_.of(row.name);
      const std::size_t at = message.find(name);
      if (at == std::string::npos || source.rfind("PET_", 0) != 0) {
        continue;
      }
      const std::size_t end = at + name.size();
      if (end < message.size() && (message[end] == '-' || std::isalnum(message[end]) != 0)) {
        continue;  // of a longer name
      }
      return message + " (" + source + " in the environment)";
    }
    return message;
  }

  CLI::App app_;
  GivenOptions given_;
  OptionSources sources_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments,
                               const Environment& environment, const HostFacts& host) {
  CommandLine line = Parser().parse(arguments, environment, host);
  if (auto* error = std::get_if<UsageError>(&line)) {
    // It quotes what was given, and that may be anything.
    for (char& c : error->message) {
      c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return line;
}

}  // namespace ddp::launcher
