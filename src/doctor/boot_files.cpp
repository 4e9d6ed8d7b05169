#include "boot_files.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace vfpass::doctor {
namespace {

/// Directories whose files are merged: one in an earlier directory hides the same name in others.
struct Family {
  BootLanguage language;
  const char* name;  ///< below etc, run, usr/local/lib, usr/lib and lib
  const char* suffix;
};

constexpr std::array families{Family{BootLanguage::udev, "udev/rules.d", ".rules"},
                              Family{BootLanguage::tmpfiles, "tmpfiles.d", ".conf"},
                              Family{BootLanguage::modprobe, "modprobe.d", ".conf"},
                              Family{BootLanguage::unit, "systemd/system", ""}};
constexpr std::array places{"etc/", "run/", "usr/local/lib/", "usr/lib/", "lib/"};

constexpr std::array scriptFolders{"etc/cron.d",
                                   "etc/cron.hourly",
                                   "etc/cron.daily",
                                   "etc/cron.weekly",
                                   "etc/cron.monthly",
                                   "var/spool/cron",
                                   "var/spool/cron/crontabs",
                                   "etc/init.d",
                                   "etc/rc.d",
                                   "etc/rc.d/init.d",
                                   "etc/network/interfaces.d",
                                   "etc/network/if-pre-up.d",
                                   "etc/network/if-up.d",
                                   "etc/network/if-down.d",
                                   "etc/network/if-post-down.d",
                                   "etc/sysconfig/network-scripts",
                                   "etc/sysconfig/network/scripts",
                                   "etc/NetworkManager/dispatcher.d",
                                   "etc/NetworkManager/dispatcher.d/pre-up.d",
                                   "usr/lib/NetworkManager/dispatcher.d",
                                   "usr/lib/NetworkManager/dispatcher.d/pre-up.d",
                                   "etc/networkd-dispatcher/carrier.d",
                                   "etc/networkd-dispatcher/configured.d",
                                   "etc/networkd-dispatcher/configuring.d",
                                   "etc/networkd-dispatcher/degraded.d",
                                   "etc/networkd-dispatcher/dormant.d",
                                   "etc/networkd-dispatcher/no-carrier.d",
                                   "etc/networkd-dispatcher/off.d",
                                   "etc/networkd-dispatcher/routable.d",
                                   "etc/local.d",
                                   "etc/libvirt/hooks",
                                   "etc/libvirt/hooks/qemu.d",
                                   "etc/libvirt/hooks/network.d",
                                   "etc/cloud/cloud.cfg.d",
                                   "var/lib/cloud/scripts/per-boot"};
constexpr std::array scriptFiles{"etc/crontab", "etc/rc.local", "etc/network/interfaces"};

// Copies that neither run-parts(8) nor cron nor an init system runs.
bool isCopy(std::string_view name) {
  constexpr std::array suffixes{"~",         ".bak",      ".orig",      ".old",      ".save",
                                ".swp",      ".rpmsave",  ".rpmnew",    ".rpmorig",  ".dpkg-old",
                                ".dpkg-new", ".dpkg-bak", ".dpkg-dist", ".ucf-dist", ".ucf-old"};
  return name.starts_with('.') ||
         std::ranges::any_of(suffixes, [&](const char* suffix) { return name.ends_with(suffix); });
}

// Links to what is examined anyway: on merged systems, and on the RHEL family.
bool isAlias(const host::Root& root, const std::string& path) {
  constexpr std::array targets{"usr/lib", "rc.d/init.d", "rc.d/rc.local"};
  const std::string target = root.linkTarget(path).value_or("");
  return std::ranges::any_of(targets, [&](const char* each) { return target.ends_with(each); });
}

void addFamily(const host::Root& root, const Family& family, std::vector<BootFile>& files) {
  std::set<std::string> names;
  for (const std::string place : places) {
    if (place == "lib/" && isAlias(root, "lib")) {
      continue;
    }
    const std::string folder = place + family.name;
    const auto add = [&](const std::string& name, bool isDropIn) {
      if (names.insert(name).second && name.ends_with(isDropIn ? ".conf" : family.suffix)) {
        files.push_back({folder + "/" + name, family.language});
      }
    };
    for (const std::string& name : root.list(folder)) {
      if (family.language == BootLanguage::unit && name.ends_with(".d")) {
        for (const std::string& each : root.list(folder + "/" + name)) {
          add(name + "/" + each, true);
        }
      } else {
        add(name, false);
      }
    }
  }
}

}  // namespace

std::vector<BootFile> bootFiles(const host::Root& root) {
  std::vector<BootFile> files;
  for (const Family& family : families) {
    addFamily(root, family, files);
  }
  for (const std::string& name : root.list("etc/sysfs.d")) {
    files.push_back({"etc/sysfs.d/" + name, BootLanguage::sysfs});
  }
  files.push_back({"etc/sysfs.conf", BootLanguage::sysfs});
  for (const std::string path : scriptFiles) {
    if (!isAlias(root, path)) {
      files.push_back({path, BootLanguage::shell});
    }
  }
  for (const std::string folder : scriptFolders) {
    if (isAlias(root, folder)) {
      continue;
    }
    for (const std::string& name : root.list(folder)) {
      files.push_back({folder + "/" + name, BootLanguage::shell});
    }
  }
  std::erase_if(files, [](const BootFile& file) {
    return isCopy(std::string_view(file.path).substr(file.path.rfind('/') + 1));
  });
  return files;
}

}  // namespace vfpass::doctor
