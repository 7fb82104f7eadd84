#include "launcher/core/option_documents.h"

#include <algorithm>
#include <string>
#include <vector>

#include "launcher/core/option_table.h"

namespace ddp::launcher {
namespace {

constexpr std::size_t kNameColumn = 28;
constexpr std::size_t kTextWidth = 51;  // with the names: 79 columns
constexpr std::size_t kLineWidth = kNameColumn + kTextWidth;

constexpr const char* kUsage = "ddplaunch [options] PROGRAM [arguments of the program]";

constexpr const char* kDescription =
    "Starts a distributed training job: the program once per worker, with RANK, WORLD_SIZE, "
    "MASTER_ADDR, ... set as torchrun sets them.";

constexpr const char* kGrammar =
    "Options can be written with - or _ between words, as --name VALUE or --name=VALUE, and "
    "shortened while unique; the last one wins. PET_<NAME> in the environment "
    "(PET_NPROC_PER_NODE=4) gives a default for those that torchrun has too. All that follows "
    "PROGRAM goes to it unchanged, but for what torchrun replaces: $local_rank and ${local_rank} "
    "become the local rank, $$ a single $.";

struct Example {
  const char* command;
  const char* note;
};
constexpr Example kExamples[] = {
    {"ddplaunch --nproc-per-node 2 train.py --epochs 3", ""},
    {"ddplaunch --nproc-per-node gpu --max-restarts 3 ./train_mlp", ""},
    {"ddplaunch --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 train.py", "1st node"},
    {"ddplaunch --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 train.py", "2nd node"},
};

constexpr OptionGroup kShownGroups[] = {OptionGroup::program,        OptionGroup::nodes,
                                        OptionGroup::stopping,       OptionGroup::reports,
                                        OptionGroup::without_effect, OptionGroup::other};

std::vector<const OptionRow*> rows_of(OptionGroup group) {
  std::vector<const OptionRow*> rows;
  for (const OptionRow& row : option_table()) {
    if (row.group == group) rows.push_back(&row);
  }
  return rows;
}

std::string wrap(std::string_view text, std::size_t width, const std::string& indent) {
  std::string result;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column > 0) {
      const bool fits = column + 1 + length <= width;
      result += fits ? " " : "\n" + indent;
      column = fits ? column + 1 : 0;
    }
    result.append(text.substr(begin, length));
    column += length;
    begin = end + 1;
  }
  return result;
}

std::string help_entry(const OptionRow& row) {
  std::string line = "  " + synopsis_of(row);
  const std::string indent(kNameColumn, ' ');
  if (line.size() + 1 > kNameColumn) {
    line += "\n" + indent;
  } else {
    line.resize(kNameColumn, ' ');
  }
  return line + wrap(row.help, kTextWidth, indent) + "\n";
}

std::string refused_names() {
  std::string names;
  for (const OptionRow* row : rows_of(OptionGroup::refused)) {
    names.append(names.empty() ? "--" : ", --").append(row->name);
  }
  return names;
}

// ---- man page
// ------------------------------------------------------------------------------------

// A line may not begin with what troff takes for a request; a hyphen that is typed is a minus.
std::string in_roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '-') {
      result += "\\-";
    } else if (c == '\\') {
      result += "\\e";
    } else if (result.empty() && (c == '.' || c == '\'')) {
      result.append("\\&").push_back(c);
    } else {
      result += c;
    }
  }
  return result;
}

std::string names_in_roff(const OptionRow& row) {
  std::string text;
  if (row.letter != '\0') text.append("\\fB\\-").append(1, row.letter).append("\\fR, ");
  text += "\\fB" + in_roff(std::string("--") + row.name) + "\\fR";
  if (row.implied != nullptr) {
    text += std::string("[=\\fI") + row.value + "\\fR]";
  } else if (!is_flag(row)) {
    text += "=\\fI" + in_roff(row.value) + "\\fR";
  }
  return text;
}

// ---- the shell
// -----------------------------------------------------------------------------------

constexpr const char* kCompletionHead =
    R"(# bash completion for ddplaunch; written by: ddplaunch --print-completion bash
_ddplaunch() {
  local word=${COMP_WORDS[COMP_CWORD]} option i
  for ((i = 1; i < COMP_CWORD; i++)); do
    option=${COMP_WORDS[i]//_/-}
    if [[ $option != -* ]]; then
      # The program: what follows is its own.
      COMPREPLY=()
      compopt -o default
      return
    fi
    if [ "${COMP_WORDS[i + 1]}" = = ]; then
      # --name=value is three words to bash.
      ((i += 2))
      if ((i > COMP_CWORD)); then word=''; fi
      if ((i >= COMP_CWORD)); then
        _ddplaunch_value "$option" "$word"
        return
      fi
    elif _ddplaunch_takes_value "$option"; then
      ((i += 1))
      if ((i == COMP_CWORD)); then
        _ddplaunch_value "$option" "$word"
        return
      fi
    fi
  done
  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$_ddplaunch_options" -- "$word") ;;
    *) COMPREPLY=(); compopt -o default ;;
  esac
}
)";

std::string completion_of_value(const OptionRow& row) {
  const std::string choices = row.choices;
  if (choices == "FILE") return "compopt -o default; COMPREPLY=()";
  if (choices == "FOLDER") {
    return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$2\")";
  }
  return "mapfile -t COMPREPLY < <(compgen -W '" + choices + "' -- \"$2\")";
}

std::string patterns_of(const OptionRow& row) {
  std::string text = std::string("--") + row.name;
  if (row.letter != '\0') text.append(" | -").append(1, row.letter);
  return text;
}

// ---- Markdown
// ------------------------------------------------------------------------------------

std::string in_cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string name_cell(const OptionRow& row) {
  std::string cell = row.letter != '\0' ? std::string("`-") + row.letter + "`, " : "";
  cell.append("`--").append(row.name);
  if (row.implied != nullptr) {
    cell.append("[=").append(row.value).append("]");
  } else if (!is_flag(row)) {
    cell.append(" ").append(row.value);
  }
  return in_cell(cell + "`");
}

const char* word_for(Standing standing) {
  switch (standing) {
    case Standing::same:
      return "same";
    case Standing::better:
      return "better";
    case Standing::partly:
      return "partly";
    case Standing::refused:
      return "refused";
    case Standing::own:
      break;
  }
  return "";
}

}  // namespace

std::string help_text() {
  std::string text = wrap(kDescription, kLineWidth, "") + "\n\nUsage: " + kUsage + "\n";
  for (const OptionGroup group : kShownGroups) {
    text += std::string("\n") + title_of(group) + ":\n";
    for (const OptionRow* row : rows_of(group)) text += help_entry(*row);
  }
  text += "\n" + wrap(kGrammar, kLineWidth, "") + "\n";
  if (const std::string names = refused_names(); !names.empty()) {
    text += "\n" +
            wrap("Known from torchrun, not in this version: " + names + ".", kLineWidth, "") + "\n";
  }
  text += "\nExamples:\n";
  for (const Example& example : kExamples) {
    text += std::string("  ") + example.command +
            (*example.note != '\0' ? std::string("  # ") + example.note : "") + "\n";
  }
  return text;
}

std::string man_page(std::string_view version) {
  std::string page = ".\\\" Written by ddp_documents from the table of options; change that.\n";
  page += ".TH DDPLAUNCH 1 \"\" \"ddplaunch " + std::string(version) + "\" \"User Commands\"\n";
  page +=
      ".SH NAME\nddplaunch \\- start, watch and restart the processes of a distributed training "
      "job\n";
  page += ".SH SYNOPSIS\n.B ddplaunch\n[\\fIoptions\\fR] \\fIPROGRAM\\fR [\\fIarguments\\fR]\n";
  page += ".SH DESCRIPTION\n" + in_roff(kDescription) + "\n.PP\n" + in_roff(kGrammar) + "\n";
  page += ".SH OPTIONS\n";
  for (const OptionGroup group : kShownGroups) {
    page += std::string(".SS ") + title_of(group) + "\n";
    for (const OptionRow* row : rows_of(group)) {
      page += ".TP\n" + names_in_roff(*row) + "\n" + in_roff(row->help) + "\n";
    }
  }
  if (const std::string names = refused_names(); !names.empty()) {
    page += ".SS Refused\nKnown from torchrun, not in this version: " + in_roff(names) + ".\n";
  }
  page += ".SH EXIT STATUS\n";
  constexpr Example kCodes[] = {
      {"0", "Every worker ended with 0."},
      {"1 to 255",
       "The first cause's own: a worker's exit code, or 128 + the signal that killed "
       "it; 128 + signal also when ddplaunch itself was interrupted."},
      {"1",
       "ddplaunch could not do its own part: the port is taken, a descriptor limit is reached."},
      {"2", "Wrong usage; one line on stderr says what."},
      {"120 to 123",
       "Not enough nodes came in time; refused by the coordinator; the coordinator was "
       "lost; a node was lost."},
      {"126, 127", "The program can't be executed, or isn't there."}};
  for (const Example& code : kCodes) {
    page += std::string(".TP\n.B ") + code.command + "\n" + in_roff(code.note) + "\n";
  }
  page += ".SH EXAMPLES\n.nf\n";
  for (const Example& example : kExamples) {
    page += in_roff(example.command) +
            (*example.note != '\0' ? "  # " + in_roff(example.note) : "") + "\n";
  }
  return page + ".fi\n";
}

std::string bash_completion() {
  std::string text = kCompletionHead;
  std::string names;
  std::string with_value;
  std::string values;
  for (const OptionRow& row : option_table()) {
    if (row.standing == Standing::refused) continue;
    names.append(names.empty() ? "--" : " --").append(row.name);
    if (is_flag(row)) continue;
    if (row.implied == nullptr) {
      with_value.append(with_value.empty() ? "" : " | ").append(patterns_of(row));
    }
    if (*row.choices != '\0') {
      values += "    " + patterns_of(row) + ") " + completion_of_value(row) + " ;;\n";
    }
  }
  text += "_ddplaunch_options='" + names + "'\n";
  text += "_ddplaunch_takes_value() {\n  case $1 in\n    " + with_value +
          ") return 0 ;;\n  esac\n  return 1\n}\n";
  text += "_ddplaunch_value() {\n  COMPREPLY=()\n  case $1 in\n" + values + "  esac\n}\n";
  return text + "complete -F _ddplaunch ddplaunch\n";
}

std::string torchrun_table() {
  std::string table = "| torchrun's option | here | |\n|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    if (row.standing == Standing::own) continue;
    table += "| " + name_cell(row) + " | " + word_for(row.standing) + " | " +
             in_cell(row.beside_torchrun) + " |\n";
  }
  return table;
}

std::string own_options_table() {
  std::string table = "| option | meaning |\n|---|---|\n";
  for (const OptionRow& row : option_table()) {
    if (row.standing == Standing::own) {
      table += "| " + name_cell(row) + " | " + in_cell(row.help) + " |\n";
    }
  }
  return table;
}

}  // namespace ddp::launcher
