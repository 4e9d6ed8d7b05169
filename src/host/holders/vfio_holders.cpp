#include "holders/holder_kinds.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "helper/guarded_child.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/host/container_and_guest_names.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

// `directory` is the kernel's object of the file in sysfs.
DeviceFile fileOf(const Root& root, const std::string& path, const std::string& directory) {
  return {path, readDeviceNumber(root, directory)};
}

DeviceFile groupFile(const Root& root, const std::string& name) {
  return fileOf(root, "/dev/vfio/" + name, "sys/class/vfio/" + name);
}

}  // namespace

std::vector<DeviceFile> vfioFilesOf(const Root& root, const PciAddress& function) {
  std::vector<DeviceFile> files;
  // Without an IOMMU, the kernel creates a group for a device in no-IOMMU mode.
  if (const auto group = readIommuGroup(root, function)) {
    files = {groupFile(root, std::to_string(*group)),
             groupFile(root, "noiommu-" + std::to_string(*group))};
  }
  const std::string directory = functionPath(function) + "/vfio-dev/";
  for (const std::string& device : root.list(directory)) {
    files.push_back(fileOf(root, "/dev/vfio/devices/" + device, directory + device));
  }
  return files;
}

std::vector<DeviceFile> allVfioFiles(const Root& root) {
  std::vector<DeviceFile> files;
  for (const std::string& name : root.list("sys/class/vfio")) {
    files.push_back(groupFile(root, name));
  }
  for (const std::string& name : root.list("sys/class/vfio-dev")) {
    files.push_back(fileOf(root, "/dev/vfio/devices/" + name, "sys/class/vfio-dev/" + name));
  }
  return files;
}

namespace {

Holder vfioHolder(const Root& root, const PciAddress& function, const Process& process) {
  const QemuGuest guest = parseQemuGuest(readCommandLine(root, process.id));
  const std::string domain = guest.name.empty() ? "" : " of domain " + guest.name;
  return {HolderKind::vfio, function, describe(process) + domain + " has it open through VFIO",
          guest.uuid ? "shut down the domain, or detach the device from it"
                     : "stop the program that uses it",
          guest.uuid};
}

Holder pendingWrite(const FunctionFacts& function, const Process& process, bool own) {
  return {
      HolderKind::pendingWrite, function.address,
      "an earlier vfpass write to " + std::string(own ? "it" : "its PF") +
          " is still pending in the kernel (pid " + process.id + ")",
      "stop whatever holds the device, wait for that process to exit, then run `vfpass recover`",
      std::nullopt};
}

}  // namespace

std::vector<Holder> processHolders(const Root& root, const FunctionFacts& function,
                                   const ProcessList& list) {
  const auto files = vfioFilesOf(root, function.address);
  std::vector<Holder> holders;
  for (const Process& process : list.processes) {
    // Report all of them: callers may exempt some holders and must still see the others.
    if (hasOpen(process, files)) {
      holders.push_back(vfioHolder(root, function.address, process));
    }
    const auto marked = markedDevice(root, process.id, process.name);
    if (marked && (*marked == function.address || marked == function.physicalFunction)) {
      holders.push_back(pendingWrite(function, process, *marked == function.address));
    }
  }
  if (!list.blindSpot.empty()) {
    holders.push_back({HolderKind::unknown, function.address, list.blindSpot,
                       "run as root on the host itself", std::nullopt});
  }
  // Without a driver nothing can use the function, the users of VFIO are also known to the kernel
  // (openWithoutProcess), and those of a NIC by netlink (netdev_holders.cpp, rdma_holders.cpp).
  if (!list.unread.empty() && isDriven(function) && !function.isNetwork) {
    holders.push_back({HolderKind::unknown, function.address, list.unread,
                       "stop that program, or accept it with `allow: [unknown-holder]` in the "
                       "mapping",
                       std::nullopt});
  }
  return holders;
}

namespace {

using std::chrono::milliseconds;

constexpr milliseconds openTimeout{1000};
// A function-level reset takes 100 ms, other resets up to a second.
constexpr milliseconds closeTimeout{2000};

// vfio_pci_core_enable() enables the device when it is opened for the first time, and
// vfio_pci_core_disable() disables it after the last close and its reset. The attribute takes no
// lock (enable_show).
bool isEnabled(const Root& root, const PciAddress& function) {
  return root.readNumber(functionPath(function) + "/enable").value_or(0) > 0;
}

// A group has one user, whichever of its devices are open.
bool anyEnabled(const Root& root, const PciAddress& function) {
  if (isEnabled(root, function)) {
    return true;
  }
  const auto group = readIommuGroup(root, function);
  const auto peers = group ? readGroupPeers(root, function, *group) : std::vector<GroupPeer>{};
  return std::ranges::any_of(peers, [&](const GroupPeer& peer) {
    return isVfioDriver(peer.driver) && isEnabled(root, peer.address);
  });
}

// The errno of open(2), 0 for success, -1 if there is no such device file or it did not return: the
// kernel holds the lock of the group while it opens a device.
int errorOfOpen(const DeviceFile& file) {
  struct stat status {};
  if (!file.number || ::stat(file.path.c_str(), &status) != 0 || !S_ISCHR(status.st_mode) ||
      status.st_rdev != *file.number) {
    return -1;
  }
  const GuardedReply reply = runGuarded(openTimeout, -1, [&](int pipe) {
    const int descriptor = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
    const int error = descriptor < 0 ? errno : 0;
    ::close(descriptor);
    writeAll(pipe, &error, sizeof error);
  });
  int error = -1;
  if (reply.finished && reply.bytes.size() == sizeof error) {
    std::memcpy(&error, reply.bytes.data(), sizeof error);
  }
  return error;
}

// `suspected`: the group may be open without a device, which does not enable any.
VfioKernelUse vfioKernelUse(const Root& root, const PciAddress& function, bool suspected) {
  const bool enabled = anyEnabled(root, function);
  if (!enabled && !suspected) {
    return VfioKernelUse::closed;
  }
  // Another driver or the display of the firmware may have left the device enabled. A group that is
  // open, or that has a device open through iommufd, refuses to be opened (vfio_group_fops_open).
  for (const DeviceFile& file : vfioFilesOf(root, function)) {
    const int error = file.path.starts_with(deviceFolder) ? -1 : errorOfOpen(file);
    if (error == EBUSY) {
      return VfioKernelUse::open;
    }
    if (error == 0) {
      return VfioKernelUse::closed;
    }
  }
  return enabled ? VfioKernelUse::enabled : VfioKernelUse::closed;
}

}  // namespace

std::map<PciAddress, VfioKernelUse> openWithoutProcess(const Root& root,
                                                       const std::vector<FunctionFacts>& functions,
                                                       const ProcessList& list) {
  std::map<PciAddress, VfioKernelUse> found;
  for (const FunctionFacts& function : functions) {
    if (!isVfioDriver(function.driver)) {
      continue;
    }
    const auto files = vfioFilesOf(root, function.address);
    if (std::ranges::any_of(list.processes,
                            [&](const Process& process) { return hasOpen(process, files); })) {
      continue;
    }
    const auto use = vfioKernelUse(root, function.address, !list.unread.empty());
    if (use != VfioKernelUse::closed) {
      found.emplace(function.address, use);
    }
  }
  return found;
}

void waitUntilClosed(const Root& root, const std::map<PciAddress, VfioKernelUse>& functions) {
  static_cast<void>(pollUntil(Deadline(closeTimeout), [&] {
    return std::ranges::none_of(
        functions, [&](const auto& function) { return anyEnabled(root, function.first); });
  }));
}

Holder hiddenHolder(const PciAddress& function, VfioKernelUse use, const std::string& unread) {
  if (use == VfioKernelUse::open) {
    return {
        HolderKind::vfio, function,
        std::string(
            "the kernel reports it as open through VFIO, by a descriptor or a memory mapping that "
            "/proc does not list for a process") +
            (unread.empty() ? "" : "; " + unread),
        "stop the program that uses it", std::nullopt};
  }
  return {
      HolderKind::unknown, function,
      "it is enabled; cannot tell whether a program has it open through VFIO",
      "make sure that nothing uses it, then unbind it from its driver or accept it with `allow: "
      "[unknown-holder]` in the mapping",
      std::nullopt};
}

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

namespace {

// Of depmod and of the kernel's build: modules.dep, modules.builtin.
std::optional<std::string> readModuleList(const Root& root, const std::string& name) {
  constexpr std::size_t limit = std::size_t{4} << 20U;
  const std::string release = root.readText("proc/sys/kernel/osrelease").value_or("");
  const bool valid = !release.empty() && release.find('/') == std::string::npos;
  return valid ? root.readText("lib/modules/" + release + "/" + name, limit) : std::nullopt;
}

}  // namespace

// VFIO loads its driver of type 1 on demand: not yet loaded, its module counts. Built in, it is in
// /sys/module because of its parameters. A kernel without any VFIO says nothing.
std::optional<bool> hasContainers(const Root& root) {
  if (root.exists("sys/module/vfio_iommu_type1")) {
    return true;
  }
  const bool loaded = root.exists("sys/module/vfio");
  // A kernel without VFIO_GROUP has no /dev/vfio/vfio. Captured trees keep no devices of this
  // class.
  if (loaded && root.isLive() && !root.exists("sys/class/misc/vfio")) {
    return false;
  }
  std::optional<bool> found;
  for (const char* name : {"modules.dep", "modules.builtin"}) {
    const auto list = readModuleList(root, name);
    if (list && list->find("/vfio_iommu_type1.ko") != std::string::npos) {
      return true;
    }
    if (list && (loaded || list->find("/vfio.ko") != std::string::npos)) {
      found = false;
    }
  }
  return found;
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
