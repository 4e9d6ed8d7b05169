#include "vfio_users.hpp"

#include "pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {

std::set<std::string> openVfioFiles(const Root& root) {
  constexpr std::string_view prefix = "/dev/vfio/";
  std::set<std::string> open;
  if (!root.isLive()) {
    return open;
  }
  for (const std::string& process : root.list("proc")) {
    if (!parseNumber(process)) {
      continue;
    }
    const std::string folder = "proc/" + process + "/fd";
    for (const std::string& descriptor : root.list(folder)) {
      const auto target = root.linkTarget(folder + "/" + descriptor);
      if (target && target->starts_with(prefix)) {
        open.insert(target->substr(prefix.size()));
      }
    }
  }
  return open;
}

bool isVfioInUse(const Root& root, const PciAddress& function, const std::set<std::string>& open) {
  const auto group = readIommuGroup(root, function);
  const std::string name = group ? std::to_string(*group) : "none";
  if (open.contains(name) || open.contains("noiommu-" + name)) {
    return true;
  }
  // Character devices of single functions, as iommufd uses them (Linux 6.6).
  for (const std::string& device : root.list(functionPath(function) + "/vfio-dev")) {
    if (open.contains("devices/" + device)) {
      return true;
    }
  }
  return false;
}

}  // namespace vfpass::host
