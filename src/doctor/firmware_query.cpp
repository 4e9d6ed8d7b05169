#include "firmware_query.hpp"

#include <algorithm>
#include <cctype>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
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
bool removeRefused(const std::string& output, std::vector<std::string>& names) {
  const auto error = output.find("-E-");
  const std::string line = error == std::string::npos ? "" : output.substr(error);
  return std::erase_if(names, [&](const std::string& name) { return containsName(line, name); }) >
         0;
}

}  // namespace

FirmwareSettings queryCard(const std::string& program, const PciAddress& card,
                           milliseconds deadline, const RunProgram& run) {
  const auto end = Clock::now() + deadline;
  const auto query = [&](const std::vector<std::string>& names) -> std::optional<std::string> {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    std::vector<std::string> command{program, "-e", "-d", toString(card), "query"};
    command.insert(command.end(), names.begin(), names.end());
    return left.count() > 0 ? run(command, left) : std::nullopt;
  };
  auto names = firmwareSettingNames();
  while (!names.empty()) {
    const auto output = query(names);
    if (!output) {
      return {};
    }
    if (removeRefused(*output, names)) {
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
