#include "competing_managers.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

/// One `KEY{attribute}OPERATOR"value"` of a udev rule.
struct UdevToken {
  std::string key;       ///< with its attribute
  bool assigns = false;  ///< `=`, `+=`, `-=` or `:=`, not a comparison
  std::string value;
  std::size_t keyAt = 0;  ///< place in the rule
  std::size_t valueAt = 0;
};

constexpr std::string_view operatorLetters = "=!+-:";

std::size_t endOfKey(std::string_view rule, std::size_t at) {
  for (bool braced = false; at < rule.size(); ++at) {
    braced = rule[at] == '{' || (braced && rule[at] != '}');
    if (!braced && (operatorLetters.find(rule[at]) != std::string_view::npos || rule[at] == '"')) {
      break;
    }
  }
  return at;
}

// The quotation mark at the end of a value; a backslash protects one within it.
std::size_t endOfValue(std::string_view rule, std::size_t at) {
  while (at < rule.size() && rule[at] != '"') {
    at += rule[at] == '\\' ? 2 : 1;
  }
  return std::min(at, rule.size());
}

/// The tokens of one rule, without its line breaks (udev(7)).
std::vector<UdevToken> udevTokens(std::string_view rule) {
  std::vector<UdevToken> tokens;
  std::size_t at = 0;
  while ((at = rule.find_first_not_of(" \t\v,", at)) != std::string_view::npos) {
    UdevToken token;
    token.keyAt = at;
    const auto keyEnd = endOfKey(rule, at);
    token.key = trim(rule.substr(at, keyEnd - at));
    const auto quote = std::min(rule.find('"', keyEnd), rule.size());
    const auto operation = trim(rule.substr(keyEnd, quote - keyEnd));
    token.assigns =
        !operation.starts_with("==") && !operation.starts_with("!=") && !operation.empty();
    token.valueAt = std::min(quote + 1, rule.size());
    const auto end = endOfValue(rule, token.valueAt);
    token.value = rule.substr(token.valueAt, end - token.valueAt);
    tokens.push_back(std::move(token));
    at = end + 1;
    if (at >= rule.size()) {
      break;
    }
  }
  return tokens;
}

// mlx5_num_vfs is the file of older MLNX_OFED releases.
constexpr std::array countFiles{"sriov_numvfs", "mlx5_num_vfs"};
// Of mlx4_core and be2net; igb and ixgbe; cxgb4.
constexpr std::array countParameters{"num_vfs=", "max_vfs=", "num_vf="};
constexpr std::string_view blanks = " \t\v\"'";
constexpr std::string_view separators = ";|&(){}`\v";
// Commands that do not write to the files that they are called with.
constexpr std::array readers{"cat",      "test", "[",    "[[",       "grep",    "head",  "ls",
                             "stat",     "read", "echo", "printf",   "logger",  "awk",   "wc",
                             "readlink", "cut",  "tail", "realpath", "dirname", "chmod", "chown"};
constexpr std::array leadingWords{"if",   "elif",    "while", "until",    "then",
                                  "else", "do",      "!",     "sudo",     "pre-up",
                                  "up",   "post-up", "down",  "pre-down", "post-down"};

/// A line with the lines that continue it. A vertical tab marks each place where they were joined.
struct LogicalLine {
  std::size_t first = 0;
  std::string text;

  [[nodiscard]] std::size_t lineOf(std::size_t at) const {
    return first + static_cast<std::size_t>(std::count(
                       text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\v'));
  }
};

std::vector<LogicalLine> logicalLines(std::string_view text) {
  std::vector<LogicalLine> lines;
  bool goesOn = false;
  std::size_t number = 0;
  for (const std::string& line : splitLines(text)) {
    ++number;
    if (!goesOn) {
      lines.push_back({number, {}});
    }
    goesOn = line.ends_with('\\');
    lines.back().text += goesOn ? line.substr(0, line.size() - 1) + '\v' : line;
  }
  std::erase_if(lines, [](const LogicalLine& line) {
    const auto begin = line.text.find_first_not_of(" \t\v");
    return begin == std::string::npos || line.text[begin] == '#' || line.text[begin] == ';';
  });
  return lines;
}

bool isWordLetter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// Places of a name that is not part of a longer one.
std::vector<std::size_t> placesOf(std::string_view text, std::string_view name) {
  std::vector<std::size_t> places;
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    const bool begins = at == 0 || !isWordLetter(text[at - 1]);
    const bool ends = name.ends_with('=') || end == text.size() || !isWordLetter(text[end]);
    if (begins && ends) {
      places.push_back(at);
    }
  }
  return places;
}

// The program of the command that ends here: its first word after the last separator.
std::string programBefore(std::string_view text) {
  const auto separator = text.find_last_of(separators);
  text.remove_prefix(separator == std::string_view::npos ? 0 : separator + 1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const auto word = text.substr(0, text.find_first_of(blanks));
    if (word.empty() || std::ranges::find(leadingWords, word) == leadingWords.end()) {
      return std::string(
          word.substr(word.rfind('/') == std::string_view::npos ? 0 : word.rfind('/') + 1));
    }
    text.remove_prefix(word.size());
  }
}

// The place of the other end of a quotation or command substitution that ends here; npos if it does
// not end here but begins.
std::size_t otherEnd(std::string_view text, std::size_t at) {
  const auto before = text.substr(0, at);
  if (text[at] == ')') {
    return before.rfind('(');
  }
  const bool closes = std::ranges::count(before, text[at]) % 2 == 1;
  return closes ? before.rfind(text[at]) : std::string_view::npos;
}

// The beginning of the word of the shell in which this place is, such as `"$dir"/sriov_numvfs` or
// `$(readlink -f x)/sriov_numvfs`.
std::size_t beginOfWord(std::string_view text, std::size_t at) {
  const std::string ends = std::string(blanks) + "<>=;|&(`";
  while (at > 0) {
    const char letter = text[at - 1];
    const bool nests = letter == '"' || letter == '\'' || letter == '`' || letter == ')';
    const auto other = nests ? otherEnd(text, at - 1) : std::string_view::npos;
    if (other != std::string_view::npos) {
      at = other;
    } else if (ends.find(letter) != std::string::npos) {
      break;
    } else {
      --at;
    }
  }
  return at;
}

// Whether the shell only reads the file whose name begins here.
bool onlyReads(std::string_view text, std::size_t at) {
  auto before = text.substr(0, beginOfWord(text, at));
  const auto last = before.find_last_not_of(blanks);
  before = before.substr(0, last == std::string_view::npos ? 0 : last + 1);
  if (before.ends_with('>') || before.ends_with("of=")) {
    return false;
  }
  return before.ends_with('<') || before.ends_with("if=") ||
         std::ranges::find(readers, programBefore(before)) != readers.end();
}

void addShellWriters(const LogicalLine& line, std::string_view text, std::size_t offset,
                     std::vector<VfCountWriter>& found) {
  for (const std::string_view name : countFiles) {
    for (const std::size_t at : placesOf(text, name)) {
      if (!onlyReads(text, at)) {
        found.push_back({line.lineOf(offset + at), std::string(name)});
      }
    }
  }
  for (const std::string_view name : countParameters) {
    for (const std::size_t at : placesOf(text, name)) {
      const std::string program = programBefore(text.substr(0, at));
      if (program == "modprobe" || program == "insmod") {
        const auto end =
            std::min(text.find_first_of(std::string(blanks) + ";|&)", at), text.size());
        found.push_back({line.lineOf(offset + at), std::string(text.substr(at, end - at))});
      }
    }
  }
}

std::string_view withoutComment(std::string_view text) {
  const auto at = std::min(text.find(" #"), text.find("\t#"));
  const bool quoted =
      at != std::string_view::npos && (std::ranges::count(text.substr(0, at), '"') % 2 == 1 ||
                                       std::ranges::count(text.substr(0, at), '\'') % 2 == 1);
  return quoted ? text : text.substr(0, at);
}

// The part of a line that a shell, or systemd in its place, runs.
using Commands = std::function<void(const LogicalLine&, std::string_view, std::size_t)>;

void eachUdevCommand(const LogicalLine& line, const Commands& use) {
  for (const UdevToken& token : udevTokens(line.text)) {
    if (token.key.starts_with("RUN") || token.key == "PROGRAM" || token.key == "IMPORT{program}") {
      use(line, token.value, token.valueAt);
    }
  }
}

// Environment= may hold the path that a command of the unit writes to.
void eachUnitCommand(const LogicalLine& line, const Commands& use) {
  const auto begin = line.text.find_first_not_of(" \t");
  const auto equals = line.text.find('=');
  const std::string_view text = line.text;
  if (equals != std::string::npos &&
      (text.substr(begin).starts_with("Exec") || text.substr(begin).starts_with("Environment="))) {
    use(line, text.substr(equals + 1), equals + 1);
  }
}

void eachCommand(BootLanguage language, std::string_view text, const Commands& use) {
  for (const LogicalLine& line : logicalLines(text)) {
    switch (language) {
      case BootLanguage::udev:
        eachUdevCommand(line, use);
        break;
      case BootLanguage::unit:
        eachUnitCommand(line, use);
        break;
      case BootLanguage::modprobe:
        if (trim(line.text).starts_with("install ")) {
          use(line, line.text, 0);
        }
        break;
      case BootLanguage::shell:
        use(line, withoutComment(line.text), 0);
        break;
      case BootLanguage::tmpfiles:
      case BootLanguage::sysfs:
      case BootLanguage::yaml:
        break;
    }
  }
}

bool namesCountFile(std::string_view text) {
  return std::ranges::any_of(countFiles,
                             [&](const char* name) { return !placesOf(text, name).empty(); });
}

// ATTRS{} and a comparison of ATTR{} only match (udev(7)).
void addAssignments(const LogicalLine& line, std::vector<VfCountWriter>& found) {
  for (const UdevToken& token : udevTokens(line.text)) {
    if (token.assigns && !token.key.starts_with("ATTRS") && namesCountFile(token.key)) {
      found.push_back({line.lineOf(token.keyAt), "sriov_numvfs"});
    }
  }
}

// Only these types write a value (tmpfiles.d(5)); others set an owner or mode.
bool writesByTmpfiles(std::string_view line) {
  return !line.empty() && std::string_view("wfFC").find(line.front()) != std::string_view::npos;
}

// `owner PATH = NAME` and `mode PATH = MODE` write no value (sysfs.conf(5)).
bool writesBySysfs(std::string_view line) {
  return !line.starts_with("owner ") && !line.starts_with("mode ");
}

void addParameters(const LogicalLine& line, std::vector<VfCountWriter>& found) {
  if (trim(line.text).starts_with("install ")) {
    return;
  }
  for (const std::string_view name : countParameters) {
    for (const std::size_t at : placesOf(line.text, name)) {
      const auto end = std::min(line.text.find_first_of(blanks, at), line.text.size());
      found.push_back({line.lineOf(at), line.text.substr(at, end - at)});
    }
  }
}

void addNamed(const LogicalLine& line, std::vector<VfCountWriter>& found) {
  for (const std::string_view name : countFiles) {
    for (const std::size_t at : placesOf(line.text, name)) {
      found.push_back({line.lineOf(at), std::string(name)});
    }
  }
}

void addSettings(BootLanguage language, const LogicalLine& line,
                 std::vector<VfCountWriter>& found) {
  const std::string_view text = trim(line.text);
  if (language == BootLanguage::udev) {
    addAssignments(line, found);
  } else if (language == BootLanguage::modprobe) {
    addParameters(line, found);
  } else if ((language == BootLanguage::tmpfiles && writesByTmpfiles(text)) ||
             (language == BootLanguage::sysfs && writesBySysfs(text))) {
    addNamed(line, found);
  }
}

// `numvfs` of os-net-config, `num_vfs` of sriov-netplan-shim, `numVfs` of the SR-IOV network
// operator.
bool isCountKey(std::string key) {
  std::erase(key, '_');
  return toLower(key) == "numvfs";
}

// `visited` counts nodes: each alias repeats the nodes of its anchor, so that a few lines can stand
// for any number of them.
void addKeys(const YAML::Node& node, unsigned depth, std::size_t& visited,
             std::vector<VfCountWriter>& found) {
  constexpr unsigned deepest = 16;
  constexpr std::size_t mostNodes = 10000;
  if (depth > deepest || ++visited > mostNodes) {
    return;
  }
  if (node.IsSequence()) {
    for (const YAML::Node& each : node) {
      addKeys(each, depth + 1, visited, found);
    }
  } else if (node.IsMap()) {
    for (const auto& each : node) {
      if (each.first.IsScalar() && each.second.IsScalar() && isCountKey(each.first.Scalar())) {
        found.push_back({static_cast<std::size_t>(each.first.Mark().line) + 1,
                         each.first.Scalar() + ": " + each.second.Scalar()});
      }
      addKeys(each.second, depth + 1, visited, found);
    }
  }
}

std::vector<VfCountWriter> writersInYaml(std::string_view text) {
  std::vector<VfCountWriter> found;
  try {
    std::size_t visited = 0;
    addKeys(YAML::Load(std::string(text)), 0, visited, found);
  } catch (const YAML::Exception&) {
    return {};  // nor can its program read it
  }
  return found;
}

}  // namespace

std::vector<VfCountWriter> vfCountWriters(BootLanguage language, std::string_view text) {
  if (language == BootLanguage::yaml) {
    return writersInYaml(text);
  }
  std::vector<VfCountWriter> found;
  eachCommand(language, text,
              [&](const LogicalLine& line, std::string_view command, std::size_t at) {
                addShellWriters(line, command, at, found);
              });
  for (const LogicalLine& line : logicalLines(text)) {
    addSettings(language, line, found);
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

std::vector<VfCountWriter> vfSetters(BootLanguage language, std::string_view text) {
  std::vector<VfCountWriter> found;
  eachCommand(language, text,
              [&](const LogicalLine& line, std::string_view command, std::size_t offset) {
                for (const std::size_t at : placesOf(command, "vf")) {
                  const auto end = std::min(command.find_first_of(separators, at), command.size());
                  const auto before = command.find_last_of(separators, at);
                  const auto begin = before == std::string_view::npos ? 0 : before + 1;
                  const auto simple = command.substr(begin, end - begin);
                  if (programBefore(command.substr(0, at)) == "ip" &&
                      !placesOf(simple, "link").empty() && !placesOf(simple, "set").empty()) {
                    found.push_back({line.lineOf(offset + at), std::string(trim(simple))});
                  }
                }
              });
  return found;
}

std::vector<std::string> startedPrograms(BootLanguage language, std::string_view text) {
  constexpr std::string_view ends = " \t\v\"'=;|&()<>{}`";
  constexpr std::string_view starts = " \t\v\"'=;|&()<>{}`@!:+-";  // systemd's prefixes, too
  const auto wordAt = [&](std::string_view command, std::size_t at) {
    return command.substr(at, std::min(command.find_first_of(ends, at), command.size()) - at);
  };
  std::vector<std::string> found;
  eachCommand(language, text, [&](const LogicalLine&, std::string_view command, std::size_t) {
    // Absolute paths.
    for (auto at = command.find('/'); at != std::string_view::npos; at = command.find('/', at)) {
      const auto path = wordAt(command, at);
      if (at == 0 || starts.find(command[at - 1]) != std::string_view::npos) {
        found.emplace_back(path);
      }
      at += path.size();
    }
    // Words that are no paths.
    for (std::size_t at = 0; (at = command.find_first_not_of(starts, at)) < command.size();) {
      const auto word = wordAt(command, at);
      if (word.find('/') == std::string_view::npos) {
        found.emplace_back(word);
      }
      at += word.size();
    }
  });
  return found;
}

}  // namespace vfpass::doctor
