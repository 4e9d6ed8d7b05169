#include <array>
#include <set>

#include "ini_settings.hpp"
#include "rivals.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
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

}  // namespace

void checkSystemd(const View& view, Results& results) {
  bool found = false;
  for (const std::string& file : systemdFiles(view)) {
    found = judgeSystemd(view, file, results) || found;
  }
  if (!found) {
    results.passed("", noSystemdVfs, "none");
  }
}

}  // namespace vfpass::doctor
