#include "launcher/core/option_scanner.h"

#include <algorithm>
#include <numeric>

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::Result;

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

bool is_negative_number(const std::string& text) {
  std::size_t digits = 0;
  std::size_t points = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    digits += text[i] >= '0' && text[i] <= '9' ? 1 : 0;
    points += text[i] == '.' ? 1 : 0;
  }
  return digits > 0 && points <= 1 && digits + points == text.size() - 1;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

struct Match {
  std::size_t spec;
  std::string name;
};

class Scanner {
 public:
  Scanner(const std::vector<OptionSpec>& specs, const std::vector<std::string>& arguments)
      : specs_(specs), arguments_(arguments) {}

  Result<ScannedLine> scan() {
    while (at_ < arguments_.size() && !ended_) {
      const std::string& token = arguments_[at_];
      if (token == "--") {
        ++at_;
        break;
      }
      if (!looks_like_option(token)) {
        break;
      }
      ++at_;
      const Result<void> read = starts_with(token, "--") ? read_long(token) : read_short(token);
      if (!read) {
        return read.error();
      }
    }
    if (!ended_ && at_ < arguments_.size()) {
      line_.program = arguments_[at_];
      line_.arguments.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                             arguments_.end());
    }
    return std::move(line_);
  }

 private:
  bool looks_like_option(const std::string& token) const {
    return token.size() > 1 && token.front() == '-' && !is_negative_number(token) &&
           (token.find(' ') == std::string::npos || token.find('=') < token.find(' ') ||
            find_exact(token.substr(0, 2)));
  }

  std::optional<Match> find_exact(const std::string& name) const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      for (const std::string& known : specs_[i].names) {
        if (known == name) {
          return Match{i, known};
        }
      }
    }
    return std::nullopt;
  }

  // One match for each option that has a spelling with that beginning.
  std::vector<Match> find_prefix(const std::string& prefix) const {
    std::vector<Match> found;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      for (const std::string& known : specs_[i].names) {
        if (starts_with(known, prefix)) {
          found.push_back(Match{i, known});
          break;
        }
      }
    }
    return found;
  }

  Result<void> read_long(const std::string& token) {
    const std::size_t equals = token.find('=');
    const std::string name = token.substr(0, equals);
    std::vector<Match> found;
    if (const auto exact = find_exact(name)) {
      found.push_back(*exact);
    } else {
      found = find_prefix(name);
    }
    if (found.empty()) {
      return unknown(name);
    }
    if (found.size() > 1) {
      std::string could;
      for (const Match& match : found) {
        could += (could.empty() ? "" : ", ") + match.name;
      }
      return Error{name + " is ambiguous: it could mean " + could};
    }
    const Match& match = found.front();
    if (equals == std::string::npos) {
      return specs_[match.spec].takes_value ? take_next(match) : take(match, "");
    }
    if (!specs_[match.spec].takes_value) {
      return Error{match.name + " takes no value, but \"" + token.substr(equals + 1) +
                   "\" was given"};
    }
    return take(match, token.substr(equals + 1));
  }

  Result<void> read_short(const std::string& token) {
    for (std::size_t i = 1; i < token.size() && !ended_; ++i) {
      const std::string name = std::string("-") + token[i];
      const auto match = find_exact(name);
      if (!match) {
        return unknown(i == 1 ? token : name);
      }
      if (specs_[match->spec].takes_value) {
        std::string value = token.substr(i + 1);
        if (value.empty()) {
          return take_next(*match);
        }
        return take(*match, value.front() == '=' ? value.substr(1) : value);
      }
      Result<void> taken = take(*match, "");
      if (!taken) {
        return taken;
      }
    }
    return {};
  }

  Result<void> take(const Match& match, std::string value) {
    line_.options.push_back(ScannedOption{match.spec, std::move(value)});
    ended_ = specs_[match.spec].ends_scan;
    return {};
  }

  Result<void> take_next(const Match& match) {
    if (const auto& implied = specs_[match.spec].implied) {
      return take(match, *implied);
    }
    if (at_ >= arguments_.size() || arguments_[at_] == "--" || looks_like_option(arguments_[at_])) {
      return Error{match.name + " needs a value"};
    }
    return take(match, arguments_[at_++]);
  }

  Result<void> unknown(const std::string& name) const {
    std::string hyphened = name;
    std::replace(hyphened.begin(), hyphened.end(), '_', '-');
    std::string nearest;
    std::size_t best =
        std::max<std::size_t>(1, (std::max<std::size_t>(name.size(), 2) - 2) / 3) + 1;
    for (const OptionSpec& spec : specs_) {
      for (const std::string& known : spec.names) {
        // A misspelt beginning counts as well: --nprocs is meant for --nproc-per-node.
        const std::size_t distance =
            std::min(edit_distance(hyphened, known),
                     edit_distance(hyphened, known.substr(0, hyphened.size())));
        if (name.size() > 2 && starts_with(known, "--") && distance < best) {
          best = distance;
          nearest = known;
        }
      }
    }
    return Error{"unknown option " + name +
                 (nearest.empty() ? "; see --help" : "; did you mean " + nearest + "?")};
  }

  const std::vector<OptionSpec>& specs_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  bool ended_ = false;
  ScannedLine line_;
};

}  // namespace

Result<ScannedLine> scan_options(const std::vector<OptionSpec>& specs,
                                 const std::vector<std::string>& arguments) {
  return Scanner(specs, arguments).scan();
}

}  // namespace ddp::launcher
