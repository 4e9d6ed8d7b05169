#include "vfpass/host/vfio_users.hpp"

#include "holders/processes.hpp"
#include "holders/qemu_process.hpp"
#include "holders/vfio_files.hpp"

namespace vfpass::host {
namespace {

constexpr std::string_view vfioFolder = "/dev/vfio/";
constexpr std::string_view deviceFolder = "/dev/vfio/devices/";

// For messages only: the process controls both texts.
std::string describeUser(const Root& root, const Process& process) {
  const std::string guest = parseQemuGuest(readCommandLine(root, process)).name;
  return describe(process) + (guest.empty() ? "" : ", guest " + guest);
}

}  // namespace

VfioUsers readVfioUsers(const Root& root) {
  VfioUsers users;
  for (const Process& process : readProcesses(root).processes) {
    for (const OpenFile& file : process.files) {
      if (file.target.starts_with(vfioFolder) && !users.contains(file.target)) {
        users.emplace(file.target, describeUser(root, process));
      }
    }
  }
  return users;
}

std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users) {
  for (const std::string& file : vfioFilesOf(root, function)) {
    if (const auto found = users.find(file); found != users.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

std::optional<VfioBackend> openBackendOf(const Root& root, const PciAddress& function,
                                         const VfioUsers& users) {
  for (const std::string& file : vfioFilesOf(root, function)) {
    if (users.contains(file)) {
      return file.starts_with(deviceFolder) ? VfioBackend::iommufd : VfioBackend::container;
    }
  }
  return std::nullopt;
}

}  // namespace vfpass::host
