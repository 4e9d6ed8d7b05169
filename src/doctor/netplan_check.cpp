#include <algorithm>
#include <iterator>
#include <map>

#include "netplan_settings.hpp"
#include "rivals.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Devices = std::map<std::string, Settings>;  ///< by ID, with the settings of all files

// `netplan set` removes a key in whatever files of /etc it is, checks the result and writes valid
// files; it escapes dots in names with a backslash. It does not change files in /usr/lib. The count
// comes last: without it, netplan refuses the other two settings.
std::string unsetCommand(const std::string& id, const Settings& settings) {
  std::string escaped;
  for (const char letter : id) {
    escaped += letter == '.' ? std::string("\\.") : std::string(1, letter);
  }
  std::vector<std::string> commands;
  for (const char* name :
       {"delay-virtual-functions-rebind", "embedded-switch-mode", "virtual-function-count"}) {
    if (std::ranges::any_of(settings, [&](const auto& each) { return each.first == name; })) {
      commands.push_back("netplan set " +
                         shellArgument("ethernets." + escaped + "." + name + "=null"));
    }
  }
  return join(commands, " && ");
}

std::string settingsOf(const NetplanDevice& device) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : device.settings) {
    parts.push_back(printable(name + ": " + value));
  }
  return (device.id.empty() ? "" : printable(device.id) + ": ") + join(parts, ", ");
}

// netplan creates a VF for each definition that links to a PF (netplan-yaml(5)). What else the
// definition says, the owner of the file has to move or give up.
std::string definitionRemedy(const NetplanDevice& device) {
  return "remove the definition `" + printable(device.id) + "`, for which netplan creates a VF";
}

std::string netplanRemedy(const std::string& file, const std::vector<NetplanDevice>& devices,
                          const Devices& all) {
  const bool isPlain = file.starts_with("etc/") && std::ranges::none_of(devices, [](auto& each) {
                         return each.id.empty() || each.id.find('=') != std::string::npos;
                       });
  if (!isPlain) {
    return editing(file, "etc/netplan", file.substr(file.rfind('/') + 1)) +
           "remove these settings, and a device that would become empty; then `netplan generate`";
  }
  std::vector<std::string> commands;
  std::vector<std::string> words;
  for (const NetplanDevice& device : devices) {
    if (const std::string command = unsetCommand(device.id, all.at(device.id)); !command.empty()) {
      commands.push_back(command);
    }
    if (device.settings.back().first == "link") {
      words.push_back(definitionRemedy(device));
    }
  }
  const std::string command = join(commands, " && ");
  if (words.empty()) {
    return command;
  }
  return (command.empty() ? "" : "run `" + command + "`; ") + "in /" + file + ", " +
         join(words, "; ") + "; then `netplan generate`";
}

// netplan merges what its files say about a device.
Devices devicesIn(const View& view, const std::vector<std::string>& files) {
  Devices all;
  for (const std::string& file : files) {
    for (const NetplanDevice& device :
         readNetplan(view.settingsText(file)).value_or(std::vector<NetplanDevice>())) {
      std::ranges::copy(device.settings, std::back_inserter(all[device.id]));
    }
  }
  return all;
}

constexpr const char* noNetplanVfs = "no netplan device that creates VFs or sets an eswitch mode";

bool judgeNetplan(const View& view, const std::string& file, const Devices& all, Results& results) {
  const auto devices = readNetplan(view.settingsText(file));
  if (!devices) {
    results.notObservable("/" + file, noNetplanVfs, "not valid YAML", "netplan generate");
    return true;
  }
  std::vector<std::string> found;
  std::ranges::transform(*devices, std::back_inserter(found), settingsOf);
  if (!devices->empty()) {
    results.failed("/" + file, noNetplanVfs, join(found, "; "), netplanRemedy(file, *devices, all));
  }
  return !devices->empty();
}

}  // namespace

void checkNetplan(const View& view, Results& results) {
  // netplan prefers files in run, but those are gone with the next boot.
  auto files = filesIn(view, {"etc/netplan", "usr/lib/netplan"});
  std::ranges::copy(filesIn(view, {"run/netplan"}), std::back_inserter(files));
  std::erase_if(files, [](const std::string& file) { return !file.ends_with(".yaml"); });
  const Devices all = devicesIn(view, files);
  bool found = false;
  for (const std::string& file : files) {
    found = judgeNetplan(view, file, all, results) || found;
  }
  if (!found) {
    results.passed("", noNetplanVfs, "none");
  }
}

}  // namespace vfpass::doctor
