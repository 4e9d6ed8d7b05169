#include <algorithm>
#include <array>
#include <set>

#include "check.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

struct Match {
  std::string file;
  std::string settings;  ///< all that match, in the file's order
};

/// The files in these directories that have a setting with one of these names.
std::vector<Match> find(const View& view, std::initializer_list<const char*> folders,
                        std::initializer_list<const char*> names) {
  std::vector<Match> matches;
  for (const std::string folder : folders) {
    for (const std::string& file : view.root().list(folder)) {
      std::vector<std::string> found = view.settings(folder + "/" + file);
      std::erase_if(found, [&](const std::string& line) {
        return std::ranges::none_of(names,
                                    [&](const char* name) { return line.starts_with(name); });
      });
      if (!found.empty()) {
        matches.push_back({"/" + folder + "/" + file, join(found, ", ")});
      }
    }
  }
  return matches;
}

/// `edit` is the sed(1) script that removes the settings from a file.
void report(const std::vector<Match>& matches, const std::string& expected, const std::string& edit,
            Results& results) {
  for (const Match& match : matches) {
    results.failed(match.file, expected, match.settings,
                   "sed -i '" + edit + "' " + shellQuoted(match.file));
  }
  if (matches.empty()) {
    results.passed("", expected, "none");
  }
}

void checkNetworkManager(const View& view, Results& results) {
  report(find(view,
              {"etc/NetworkManager/system-connections", "run/NetworkManager/system-connections",
               "usr/lib/NetworkManager/system-connections"},
              {"total-vfs"}),
         "no connection with sriov.total-vfs", "/total-vfs/d", results);
}

// Of the vendor that the rule in packaging/network matches.
bool hostHasVfNetdevs(const View& view) {
  return std::ranges::any_of(view.topology().functions, [](const TopologyFunction& function) {
    return function.physicalFunction && function.vendor == mellanox && !function.netdevs.empty();
  });
}

bool hasSetting(const std::vector<std::string>& settings, std::string_view name,
                std::string_view value = "") {
  return std::ranges::any_of(settings, [&](const std::string& line) {
    return line.starts_with(name) && line.ends_with(value);
  });
}

// The udev rules that keep NetworkManager away from VFs: they recognize a VF by its link `physfn`.
// A file hides those of the same name in later directories (udev(7)).
std::string rulesForVfs(const View& view) {
  std::set<std::string> names;
  for (const std::string folder : {"etc/udev/rules.d", "run/udev/rules.d",
                                   "usr/local/lib/udev/rules.d", "usr/lib/udev/rules.d"}) {
    for (const std::string& file : view.root().list(folder)) {
      if (!file.ends_with(".rules") || !names.insert(file).second) {
        continue;
      }
      const auto settings = view.settings(folder + "/" + file);
      if (hasSetting(settings, "physfn") && hasSetting(settings, "nm_unmanaged", "1")) {
        return "/" + folder + "/" + file;
      }
    }
  }
  return {};
}

std::string withoutManagedVfs(const View& view) {
  if (!view.root().exists("etc/NetworkManager")) {
    return "no NetworkManager";
  }
  return hostHasVfNetdevs(view) ? "" : "no VF of a ConnectX NIC has a netdev on the host";
}

void checkDhcp(const View& view, Results& results) {
  const std::string expected =
      "a udev rule with NM_UNMANAGED, unmanaged-devices or no-auto-default";
  if (const std::string rules = rulesForVfs(view); !rules.empty()) {
    results.passed("", expected, "NM_UNMANAGED in " + rules);
    return;
  }
  const auto matches = find(view,
                            {"etc/NetworkManager", "etc/NetworkManager/conf.d",
                             "run/NetworkManager/conf.d", "usr/lib/NetworkManager/conf.d"},
                            {"unmanaged-devices", "no-auto-default"});
  if (!matches.empty()) {
    results.passed("", expected, matches[0].settings + " in " + matches[0].file);
  } else {
    // Without `udevadm trigger`: the host itself may use VFs that exist (docs/network-managers.md).
    results.failed("", expected, "none of them",
                   "ln -s " + shellQuoted(VFPASS_NETWORK_DIRECTORY "/95-vfpass-vf.rules") +
                       " /etc/udev/rules.d/ && udevadm control --reload");
  }
}

void checkNetplan(const View& view, Results& results) {
  report(find(view, {"etc/netplan", "run/netplan", "usr/lib/netplan"}, {"virtual-function-count"}),
         "no virtual-function-count", "/virtual-function-count/d", results);
}

void checkSystemd(const View& view, Results& results) {
  report(find(view, {"etc/systemd/network", "run/systemd/network", "usr/lib/systemd/network"},
              {"[sr-iov]", "sr-iovvirtualfunctions"}),
         "no [SR-IOV] section and no SR-IOVVirtualFunctions=",
         "/SR-IOVVirtualFunctions/Id; /^\\[SR-IOV\\]/I,/^\\[/{/^\\[SR-IOV\\]/Id; /^\\[/!d}",
         results);
}

void checkScripts(const View& view, Results& results) {
  report(find(view,
              {"etc/udev/rules.d", "etc/tmpfiles.d", "etc/sysfs.d", "etc/modprobe.d",
               "etc/network/if-up.d", "etc/systemd/system"},
              {"sriov_numvfs", "num_vfs", "max_vfs"}),
         "no other writer of sriov_numvfs", "/sriov_numvfs/d; /num_vfs/d; /max_vfs/d", results);
}

constexpr std::array checks{
    Check{"networkmanager-sriov", "it resets the VF count whenever it activates the PF", always,
          checkNetworkManager},
    Check{"networkmanager-dhcp", "it runs DHCP on VFs that are reserved for guests",
          withoutManagedVfs, checkDhcp},
    Check{"netplan", "if two tools set the VF count, the later one removes VFs in use", always,
          checkNetplan},
    Check{"systemd-link", "if two tools set the VF count, the later one removes VFs in use", always,
          checkSystemd},
    Check{"boot-scripts", "if two tools set the VF count, the later one removes VFs in use", always,
          checkScripts}};

}  // namespace

std::span<const Check> rivalChecks() { return checks; }

}  // namespace vfpass::doctor
