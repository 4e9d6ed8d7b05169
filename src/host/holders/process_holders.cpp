#include "holders/process_holders.hpp"

#include "helper/call_mark.hpp"
#include "holders/block_uses.hpp"
#include "holders/qemu_process.hpp"
#include "holders/vfio_files.hpp"
#include "vfpass/host/command_line.hpp"

namespace vfpass::host {
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
    if (marked && (*marked == function.address || marked == function.pf)) {
      holders.push_back(pendingWrite(function, process, *marked == function.address));
    }
  }
  if (!list.blindSpot.empty()) {
    holders.push_back({HolderKind::unknown, function.address, list.blindSpot,
                       "run as root on the host itself", std::nullopt});
  }
  // Without a driver nothing can use the function, the users of VFIO are also known to the kernel
  // (vfio_kernel_use.hpp), and those of a NIC by netlink (netdev_holders.hpp, rdma_holders.hpp).
  if (!list.unread.empty() && isDriven(function) && !function.isNetwork) {
    holders.push_back({HolderKind::unknown, function.address, list.unread,
                       "stop that program, or accept it with `allow: [unknown-holder]` in the "
                       "mapping",
                       std::nullopt});
  }
  return holders;
}

std::vector<Holder> blockHolders(const Root& root, const FunctionFacts& function,
                                 const MountTable& mounts, const std::vector<Process>& processes) {
  std::vector<Holder> holders;
  constexpr std::uint32_t bridge = 0x06;  // much of the host may be below a bridge
  if (function.path.empty() || function.baseClass == bridge) {
    return holders;
  }
  for (const std::string& use : readBlockUses(root, function.path, mounts, processes)) {
    holders.push_back({HolderKind::block, function.address, "its disk " + use,
                       "unmount the disk and stop everything else that uses it", std::nullopt});
  }
  return holders;
}

}  // namespace vfpass::host
