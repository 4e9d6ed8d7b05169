#include <algorithm>
#include <iterator>

#include "competing_managers.hpp"
#include "known_settings.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

struct Match {
  std::string file;
  std::string settings;  ///< all that match, in the file's order
};

/// The files that have a setting with one of these names.
std::vector<Match> find(const View& view, const std::vector<std::string>& files,
                        std::initializer_list<const char*> names) {
  std::vector<Match> matches;
  for (const std::string& file : files) {
    std::vector<std::string> found = view.settings(file);
    std::erase_if(found, [&](const std::string& line) {
      return std::ranges::none_of(names, [&](const char* name) { return line.starts_with(name); });
    });
    if (!found.empty()) {
      matches.push_back({"/" + file, join(found, ", ")});
    }
  }
  return matches;
}

std::vector<std::string> networkManagerFiles(const View& view) {
  std::vector<std::string> files{"etc/NetworkManager/NetworkManager.conf"};
  std::ranges::copy(filesIn(view, {"etc/NetworkManager/conf.d", "run/NetworkManager/conf.d",
                                   "usr/lib/NetworkManager/conf.d"}),
                    std::back_inserter(files));
  return files;
}

// Without `remove`, nmcli would leave an empty group, which means 0 VFs. The UUID names the profile
// even if several have the same name.
std::string profileRemedy(const std::string& file, const std::string& uuid, const std::string& id) {
  const std::string removed = " remove sriov";
  if (file.starts_with("usr/")) {
    return editing(file, "etc/NetworkManager/system-connections",
                   file.substr(file.rfind('/') + 1)) +
           "remove the group [sriov] and set mode 0600; then `nmcli connection reload`";
  }
  if (!uuid.empty()) {
    return "nmcli connection modify uuid " + shellArgument(uuid) + removed;
  }
  // Without an ID, the name of the file is the ID; an escaped one has another form in nmcli.
  constexpr std::string_view suffix = ".nmconnection";
  std::string name = id.empty() ? file.substr(file.rfind('/') + 1) : id;
  name.resize(name.size() - (id.empty() && name.ends_with(suffix) ? suffix.size() : 0));
  if (name.find('\\') != std::string::npos) {
    return "remove the group [sriov] from this profile with `nmcli connection edit`";
  }
  return "nmcli connection modify id " + shellArgument(name) + removed;
}

constexpr const char* noProfile = "no profile with SR-IOV settings";

// An empty group counts, too: its default is 0 VFs.
bool judgeProfile(const View& view, const std::string& file, Results& results) {
  const auto sections = readIni(view.settingsText(file));
  const IniSection* vfs = findSection(sections, "sriov");
  if (vfs == nullptr) {
    return false;
  }
  const std::string total = vfs->value("total-vfs");
  const IniSection* profile = findSection(sections, "connection");
  const auto valueOf = [&](const char* key) {
    return profile == nullptr ? std::string() : profile->value(key);
  };
  results.failed("/" + file, noProfile,
                 total.empty() ? "[sriov] without total-vfs, which means 0" : "total-vfs=" + total,
                 profileRemedy(file, valueOf("uuid"), valueOf("id")));
  return true;
}

// A profile in the older format of the RHEL family.
bool judgeIfcfg(const View& view, const std::string& file, Results& results) {
  const auto settings = view.settings(file);
  if (settings.empty()) {
    return false;
  }
  const std::string uuid = readIni(view.settingsText(file)).front().value("UUID");
  results.failed("/" + file, noProfile, settings.front(),
                 uuid.empty() ? "remove the lines that begin with SRIOV_ from /" + file +
                                    ", then `nmcli connection reload`"
                              : profileRemedy(file, uuid, ""));
  return true;
}

// A default for all PFs that match (NetworkManager.conf(5)).
bool judgeNetworkManagerFiles(const View& view, Results& results) {
  const auto matches = find(view, networkManagerFiles(view), {"sriov-num-vfs"});
  for (const Match& match : matches) {
    const std::string file = match.file.substr(1);
    results.failed(match.file, noProfile, match.settings,
                   editing(file, "etc/NetworkManager/conf.d", file.substr(file.rfind('/') + 1)) +
                       "remove sriov-num-vfs, then `systemctl reload NetworkManager`");
  }
  return !matches.empty();
}

}  // namespace

void checkNetworkManager(const View& view, Results& results) {
  // A profile in run is temporary and hides one in etc only until the next boot.
  auto files = filesIn(
      view, {"etc/NetworkManager/system-connections", "usr/lib/NetworkManager/system-connections"});
  std::ranges::copy(filesIn(view, {"run/NetworkManager/system-connections"}),
                    std::back_inserter(files));
  bool found = judgeNetworkManagerFiles(view, results);
  for (const std::string& file : files) {
    found = judgeProfile(view, file, results) || found;
  }
  for (const std::string& file : filesIn(view, {"etc/sysconfig/network-scripts"})) {
    found = judgeIfcfg(view, file, results) || found;
  }
  if (!found) {
    results.passed("", noProfile, "none");
  }
}

namespace {

// Of the vendor that the rule in packaging/network matches.
bool hostHasVfNetdevs(const View& view) {
  return std::ranges::any_of(view.topology().functions, [](const Device& function) {
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
  for (const std::string& file :
       filesIn(view, {"etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d",
                      "usr/lib/udev/rules.d"})) {
    const auto settings = view.settings(file);
    if (file.ends_with(".rules") && hasSetting(settings, "physfn") &&
        hasSetting(settings, "nm_unmanaged", "1")) {
      return "/" + file;
    }
  }
  return {};
}

}  // namespace

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
  const auto matches =
      find(view, networkManagerFiles(view), {"unmanaged-devices", "no-auto-default"});
  if (!matches.empty()) {
    results.passed("", expected, matches[0].settings + " in " + matches[0].file);
  } else {
    // Without `udevadm trigger`: the host itself may use VFs that exist (docs/network-managers.md).
    results.failed("", expected, "none of them",
                   "ln -s " + shellQuoted(VFPASS_NETWORK_DIRECTORY "/95-vfpass-vf.rules") +
                       " /etc/udev/rules.d/ && udevadm control --reload");
  }
}

}  // namespace vfpass::doctor
