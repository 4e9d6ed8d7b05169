#include "boot_commands.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

// mlx5_num_vfs is the file of older MLNX_OFED releases.
constexpr std::array countFiles{"sriov_numvfs", "mlx5_num_vfs"};
// Of mlx4_core and be2net; igb and ixgbe; cxgb4.
constexpr std::array countParameters{"num_vfs=", "max_vfs=", "num_vf="};
// Commands that do not write to the files that they are called with.
constexpr std::array readers{"cat",      "test", "[",    "[[",       "grep",    "head",  "ls",
                             "stat",     "read", "echo", "printf",   "logger",  "awk",   "wc",
                             "readlink", "cut",  "tail", "realpath", "dirname", "chmod", "chown"};

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
  const std::string ends = std::string(shellBlanks) + "<>=;|&(`";
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
  const auto last = before.find_last_not_of(shellBlanks);
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
            std::min(text.find_first_of(std::string(shellBlanks) + ";|&)", at), text.size());
        found.push_back({line.lineOf(offset + at), std::string(text.substr(at, end - at))});
      }
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
      const auto end = std::min(line.text.find_first_of(shellBlanks, at), line.text.size());
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
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<VfCountWriter> vfSetters(BootLanguage language, std::string_view text) {
  std::vector<VfCountWriter> found;
  eachCommand(
      language, text, [&](const LogicalLine& line, std::string_view command, std::size_t offset) {
        std::optional<std::size_t> last;  // one command may set several VFs
        for (const std::size_t at : placesOf(command, "vf")) {
          const auto end = std::min(command.find_first_of(shellSeparators, at), command.size());
          const auto before = command.find_last_of(shellSeparators, at);
          const auto begin = before == std::string_view::npos ? 0 : before + 1;
          const auto simple = command.substr(begin, end - begin);
          if (last != begin && programBefore(command.substr(0, at)) == "ip" &&
              !placesOf(simple, "link").empty() && !placesOf(simple, "set").empty()) {
            last = begin;
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
    // Words that are not paths.
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
