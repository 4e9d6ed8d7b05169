#include "firmware_settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::array names{"ATS_ENABLED",      "INTERNAL_CPU_OFFLOAD_ENGINE",
                           "LINK_TYPE_P1",     "LINK_TYPE_P2",
                           "NUM_OF_VFS",       "PF_NUM_OF_VF",
                           "SRIOV_EN",         "PF_NUM_OF_VF_VALID",
                           "VF_MIGRATION_MODE"};
constexpr std::size_t valueLimit = 40;
constexpr std::uint64_t usualVfs = 16;
constexpr std::string_view unknown = "-";

std::vector<std::string> wordsOf(std::string_view line) {
  std::vector<std::string> words;
  while (!(line = trim(line)).empty()) {
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

bool isValue(const std::string& word) {
  return word.size() <= valueLimit && std::ranges::all_of(word, [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '_' || letter == '(' || letter == ')';
         });
}

// A row is an optional mark (`*`: differs, `RO`: read-only), the name, and one value for each
// column of the heading; `Next Boot` is last, `Current` comes before it.
void addSetting(const std::vector<std::string>& words, bool hasCurrent,
                FirmwareSettings& settings) {
  for (std::size_t at = 0; at < std::min<std::size_t>(2, words.size()); ++at) {
    const auto values = words.size() - at - 1;
    if (std::ranges::find(names, words[at]) == names.end() || values < (hasCurrent ? 2U : 1U)) {
      continue;
    }
    const std::string current = hasCurrent ? words[words.size() - 2] : "";
    if (isValue(current) && isValue(words.back())) {
      settings[words[at]] = {current, words.back()};
    }
    return;
  }
}

std::string textOf(const std::string& name, const FirmwareSetting& setting) {
  return name + " " + (setting.current.empty() ? "unknown" : setting.current) +
         (setting.current == setting.nextBoot ? ""
                                              : " now, " + setting.nextBoot + " at the next boot");
}

}  // namespace

std::vector<std::string> firmwareSettingNames() { return {names.begin(), names.end()}; }

FirmwareSettings firmwareSettingsIn(std::string_view output) {
  FirmwareSettings settings;
  bool inside = false;
  bool hasCurrent = false;
  for (const std::string& line : splitLines(std::string(output))) {
    if (trim(line).starts_with("Configurations:")) {
      inside = true;
      hasCurrent = line.find("Current") != std::string::npos;
    } else if (inside) {
      addSetting(wordsOf(line), hasCurrent, settings);
    }
  }
  return settings;
}

std::string toText(const FirmwareSettings& settings) {
  std::string text;
  for (const auto& [name, setting] : settings) {
    text += name + " " + (setting.current.empty() ? std::string(unknown) : setting.current) + " " +
            setting.nextBoot + "\n";
  }
  return std::string(trim(text));
}

FirmwareSettings firmwareSettingsFrom(std::string_view text) {
  FirmwareSettings settings;
  for (const std::string& line : splitLines(std::string(text))) {
    const auto words = wordsOf(line);
    const bool known = words.size() == 3 && std::ranges::find(names, words[0]) != names.end();
    if (known && (words[1] == unknown || isValue(words[1])) && isValue(words[2])) {
      settings[words[0]] = {words[1] == unknown ? "" : words[1], words[2]};
    }
  }
  return settings;
}

std::optional<std::uint64_t> numberOf(const std::string& value) {
  const auto open = value.find('(');
  if (open == std::string::npos) {
    return parseNumber(value);
  }
  return value.ends_with(')')
             ? parseNumber(std::string_view(value).substr(open + 1, value.size() - open - 2))
             : std::nullopt;
}

bool FirmwareNeed::meets(const std::string& text) const {
  const auto number = numberOf(text);
  return number && (orMore ? *number >= value : *number == value);
}

std::string FirmwareNeed::text() const {
  return name + (orMore ? ">=" : "=") + std::to_string(value);
}

std::string FirmwareNeed::assignment() const {
  return name + "=" + std::to_string(orMore ? std::max(value, usualVfs) : value);
}

FirmwareJudgement judge(const std::vector<FirmwareNeed>& needs, const FirmwareSettings& settings) {
  FirmwareJudgement judgement;
  for (const FirmwareNeed& need : needs) {
    const auto found = settings.find(need.name);
    if (found == settings.end()) {
      judgement.seen.push_back("no " + need.name);
      continue;
    }
    const FirmwareSetting& setting = found->second;
    judgement.seen.push_back(textOf(need.name, setting));
    if (!need.meets(setting.nextBoot)) {
      judgement.toSet.push_back(need.assignment());
    } else if (setting.current.empty()) {
      judgement.unknown = true;
    } else if (!need.meets(setting.current)) {
      judgement.pending = true;
    }
  }
  return judgement;
}

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

bool isNamePart(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool containsName(const std::string& line, const std::string& name) {
  for (auto at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !isNamePart(line[at - 1])) && (end == line.size() || !isNamePart(line[end]))) {
      return true;
    }
  }
  return false;
}

// Removes the names in the program's error, which has a line of its own that begins with `-E-`;
// false: it names none.
bool removeRefused(const std::string& output, std::vector<std::string>& queried) {
  const auto error = output.find("-E-");
  const std::string line = error == std::string::npos ? "" : output.substr(error);
  return std::erase_if(queried, [&](const std::string& name) { return containsName(line, name); }) >
         0;
}

}  // namespace

FirmwareSettings queryCard(const std::string& program, const PciAddress& card,
                           milliseconds deadline, const RunProgram& run) {
  const auto end = Clock::now() + deadline;
  const auto query = [&](const std::vector<std::string>& wanted) -> std::optional<std::string> {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    std::vector<std::string> command{program, "-e", "-d", toString(card), "query"};
    command.insert(command.end(), wanted.begin(), wanted.end());
    return left.count() > 0 ? run(command, left) : std::nullopt;
  };
  auto remaining = firmwareSettingNames();
  while (!remaining.empty()) {
    const auto output = query(remaining);
    if (!output) {
      return {};
    }
    if (removeRefused(*output, remaining)) {
      continue;
    }
    if (auto settings = firmwareSettingsIn(*output); !settings.empty()) {
      return settings;
    }
    break;
  }
  return firmwareSettingsIn(query({}).value_or(""));
}

}  // namespace vfpass::doctor
