#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Processes that use the function through VFIO, guarded helpers whose write to it (or to the PF of
/// a VF) is still pending in the kernel, and one `unknown` if not all of /proc could be read.
std::vector<Holder> processHolders(const Root& root, const FunctionFacts& function,
                                   const ProcessList& list);

/// The kernel's knowledge of a function's use through VFIO, whoever uses it: a descriptor that was
/// sent to a socket and not yet received, a registered file of io_uring, or a memory mapping has no
/// entry in /proc/PID/fd.
enum class VfioKernelUse {
  closed,
  open,
  enabled,  ///< the device is enabled, and the kernel does not say whether it is open
};

/// Functions that are in use through VFIO although none of these processes has their files open.
/// Changes nothing: a group is only opened, to test for EBUSY, if the device is enabled or if some
/// process could not be read. To open it always could disturb a VM that is starting.
std::map<PciAddress, VfioKernelUse> openWithoutProcess(const Root& root,
                                                       const std::vector<FunctionFacts>& functions,
                                                       const ProcessList& list);

/// Waits until the kernel has closed these functions, or a short time: it resets a function after
/// its last descriptor has disappeared from /proc.
void waitUntilClosed(const Root& root, const std::map<PciAddress, VfioKernelUse>& functions);

/// `unread` is that of the ProcessList.
Holder hiddenHolder(const PciAddress& function, VfioKernelUse use, const std::string& unread);

/// Device files of single functions, as opposed to groups.
inline constexpr std::string_view deviceFolder = "/dev/vfio/devices/";

/// The device files that give access to a function through VFIO: those of its IOMMU group
/// (`/dev/vfio/12`, `/dev/vfio/noiommu-12`), which cover every device of the group, and its own
/// (`/dev/vfio/devices/vfio3`, which iommufd uses since Linux 6.6).
std::vector<DeviceFile> vfioFilesOf(const Root& root, const PciAddress& function);

/// Those of all functions.
std::vector<DeviceFile> allVfioFiles(const Root& root);

}  // namespace vfpass::host
