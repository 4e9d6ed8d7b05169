#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "competing_managers.hpp"
#include "known_settings.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {

std::vector<std::string> filesIn(const View& view,
                                 std::initializer_list<std::string_view> folders) {
  std::set<std::string> names;
  std::vector<std::string> files;
  for (const std::string_view folder : folders) {
    for (const std::string& name : view.root().list(std::string(folder))) {
      if (names.insert(name).second) {
        files.push_back(std::string(folder) + "/" + name);
      }
    }
  }
  return files;
}

std::string editing(const std::string& file, const std::string& folder, const std::string& name) {
  if (file.starts_with("etc/")) {
    return "in /" + file + ", ";
  }
  return "copy /" + file + " to /" + folder + "/" + name + ", which overrides it; there, ";
}

namespace {

// Files of systemd-udevd and systemd-networkd with their drop-ins; those in etc hide the others
// (systemd.link(5)).
std::vector<std::string> systemdFiles(const View& view) {
  constexpr std::array folders{"etc/systemd/network", "run/systemd/network",
                               "usr/local/lib/systemd/network", "usr/lib/systemd/network"};
  std::set<std::string> names;
  std::vector<std::string> files;
  const auto add = [&](const std::string& folder, const std::string& name) {
    if (names.insert(name).second) {
      files.push_back(folder + "/" + name);
    }
  };
  for (const std::string folder : folders) {
    for (const std::string& name : view.root().list(folder)) {
      if (name.ends_with(".link") || name.ends_with(".network")) {
        add(folder, name);
      } else if (name.ends_with(".link.d") || name.ends_with(".network.d")) {
        for (const std::string& drop : view.root().list(folder + "/" + name)) {
          if (drop.ends_with(".conf")) {
            add(folder, name + "/" + drop);
          }
        }
      }
    }
  }
  return files;
}

constexpr const char* noSystemdVfs = "no [SR-IOV] section and no SR-IOVVirtualFunctions=";

std::string systemdRemedy(const std::string& file, const std::vector<std::string>& parts) {
  constexpr std::string_view folder = "systemd/network/";
  const std::string name = file.substr(file.find(folder) + folder.size());
  const bool isLink = name.find(".network") == std::string::npos;
  return editing(file, "etc/systemd/network", name) + "remove " + join(parts, " and ") +
         "; then `" + (isLink ? "udevadm control --reload" : "networkctl reload") + "`";
}

bool judgeSystemd(const View& view, const std::string& file, Results& results) {
  std::vector<std::string> seen;
  std::vector<std::string> parts;
  std::size_t sections = 0;
  for (const IniSection& section : readIni(view.settingsText(file))) {
    const std::string count = section.value("SR-IOVVirtualFunctions");
    if (!count.empty()) {
      seen.push_back("SR-IOVVirtualFunctions=" + count);
      parts.emplace_back("SR-IOVVirtualFunctions= from [Link]");
    }
    sections += section.is("SR-IOV") ? 1 : 0;
  }
  if (sections > 0) {
    const std::string counted =
        std::to_string(sections) + " [SR-IOV] section" + (sections == 1 ? "" : "s");
    seen.push_back(counted);
    parts.push_back((sections == 1 ? "the " : "all ") + counted + " with all keys below " +
                    (sections == 1 ? "it" : "them"));
  }
  if (!seen.empty()) {
    results.failed("/" + file, noSystemdVfs, join(seen, ", "), systemdRemedy(file, parts));
  }
  return !seen.empty();
}

void checkSystemd(const View& view, Results& results) {
  bool found = false;
  for (const std::string& file : systemdFiles(view)) {
    found = judgeSystemd(view, file, results) || found;
  }
  if (!found) {
    results.passed("", noSystemdVfs, "none");
  }
}

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

constexpr std::array competingManagerTable{
    Check{"networkmanager-sriov", "it resets the VF count whenever it activates the PF", always,
          checkNetworkManager},
    Check{"networkmanager-dhcp", "it runs DHCP on VFs that are reserved for guests",
          withoutManagedVfs, checkDhcp},
    Check{"netplan", "if two tools set the VF count, the later one removes VFs in use", always,
          checkNetplan},
    Check{"systemd-link", "if two tools set the VF count, the later one removes VFs in use", always,
          checkSystemd},
    Check{"boot-scripts", "if two tools set the VF count, the later one removes VFs in use", always,
          checkBootScripts}};

}  // namespace

std::span<const Check> competingManagerChecks() { return competingManagerTable; }

}  // namespace vfpass::doctor
