#include "vfpass/host/vfio_users.hpp"

#include "holders/process_holders.hpp"
#include "vfpass/host/command_line.hpp"

namespace vfpass::host {
namespace {

// For messages only: the process controls both texts.
std::string describeUser(const Root& root, const Process& process) {
  const std::string guest = parseQemuGuest(readCommandLine(root, process.id)).name;
  return describe(process) + (guest.empty() ? "" : ", guest " + guest);
}

}  // namespace

VfioUsers readVfioUsers(const Root& root) {
  VfioUsers users;
  const auto files = allVfioFiles(root);
  for (const Process& process : readProcesses(root).processes) {
    for (const DeviceFile& file : files) {
      if (hasOpen(process, {file}) && !users.contains(file.path)) {
        users.emplace(file.path, describeUser(root, process));
      }
    }
  }
  return users;
}

std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users) {
  for (const DeviceFile& file : vfioFilesOf(root, function)) {
    if (const auto found = users.find(file.path); found != users.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

std::optional<VfioBackend> openBackendOf(const Root& root, const PciAddress& function,
                                         const VfioUsers& users) {
  for (const DeviceFile& file : vfioFilesOf(root, function)) {
    if (users.contains(file.path)) {
      return file.path.starts_with(deviceFolder) ? VfioBackend::iommufd : VfioBackend::container;
    }
  }
  return std::nullopt;
}

std::vector<VfioHolder> vfioHolders(const Root& root, const PciAddress& function) {
  std::vector<VfioHolder> holders;
  if (!root.isLive()) {
    return holders;
  }
  const auto files = vfioFilesOf(root, function);
  for (const Process& process : readProcesses(root).processes) {
    if (hasOpen(process, files)) {
      holders.push_back({process.id, argumentsOf(readCommandLine(root, process.id))});
    }
  }
  return holders;
}

}  // namespace vfpass::host
