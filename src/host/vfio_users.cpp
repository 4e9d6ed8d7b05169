#include "vfpass/host/vfio_users.hpp"

#include "pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestCommandLine = std::size_t{64} << 10U;

// libvirt starts QEMU with `-name guest=NAME,...`. A comma in a name is written twice.
std::string guestOf(const std::string& commandLine) {
  constexpr std::string_view option = std::string_view("\0-name\0guest=", 13);
  const auto found = commandLine.find(option);
  if (found == std::string::npos) {
    return "";
  }
  std::string name;
  for (std::size_t i = found + option.size(); i < commandLine.size() && commandLine[i] != 0; ++i) {
    if (commandLine[i] == ',' && commandLine.substr(i, 2) != ",,") {
      break;
    }
    i += commandLine[i] == ',' ? 1 : 0;
    name += commandLine[i];
  }
  return name;
}

std::string describeProcess(const Root& root, const std::string& process) {
  const std::string folder = "proc/" + process;
  const std::string guest =
      guestOf(root.readText(folder + "/cmdline", longestCommandLine).value_or(""));
  return root.readText(folder + "/comm").value_or("a process") + " (pid " + process + ")" +
         (guest.empty() ? "" : ", guest " + guest);
}

}  // namespace

bool isVfioDriver(std::string_view driver) {
  return driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci");
}

VfioUsers readVfioUsers(const Root& root) {
  constexpr std::string_view prefix = "/dev/vfio/";
  VfioUsers users;
  for (const std::string& process : root.list("proc")) {
    if (!parseNumber(process)) {
      continue;
    }
    const std::string folder = "proc/" + process + "/fd";
    for (const std::string& descriptor : root.list(folder)) {
      const auto target = root.linkTarget(folder + "/" + descriptor);
      if (target && target->starts_with(prefix)) {
        users.try_emplace(target->substr(prefix.size()), describeProcess(root, process));
      }
    }
  }
  return users;
}

std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users) {
  const auto group = readIommuGroup(root, function);
  const std::string name = group ? std::to_string(*group) : "none";
  std::vector<std::string> files{name, "noiommu-" + name};
  // Character devices of single functions, as iommufd uses them (Linux 6.6).
  for (const std::string& device : root.list(functionPath(function) + "/vfio-dev")) {
    files.push_back("devices/" + device);
  }
  for (const std::string& file : files) {
    if (const auto found = users.find(file); found != users.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

}  // namespace vfpass::host
