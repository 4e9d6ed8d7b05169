#include <array>
#include <set>

#include "rivals.hpp"

namespace vfpass::doctor {
namespace {

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
          checkBootScripts}};

}  // namespace

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

std::span<const Check> rivalChecks() { return checks; }

}  // namespace vfpass::doctor
