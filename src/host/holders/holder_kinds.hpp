#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holders/link_survey.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/device.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// A function whose holders are wanted: path, class, driver, PF, netdevs in our network namespace,
/// RDMA devices that are visible in it, without SoftRoCE, and link layer.
struct FunctionFacts : Device {
  bool isNetwork = false;  ///< a network device, whose driver should create a netdev
  std::vector<std::string> virtualDevices;  ///< created on it: `vDPA device vdpa0`, printable
};

/// Nullopt when there is no such function.
std::optional<FunctionFacts> readFunctionFacts(const Root& root, const PciAddress& address);

/// Whether it is bound to a host driver, through which it may be in use.
bool isDriven(const Device& function);

/// The PCI function that a device on another bus belongs to. For bus `virtio` and device `virtio3`:
/// the function bound to virtio_pci. Nullopt when it belongs to none.
std::optional<PciAddress> functionOfDevice(const Root& root, const std::string& bus,
                                           const std::string& name);

/// The last PCI function in a sysfs path.
std::optional<PciAddress> lastFunctionOnPath(std::string_view path);

// The kinds of holders that findHolders() collects, each with its own source.

// vfio_holders.cpp

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

// device_file_holders.cpp

/// Processes that have a character device of one of these functions open. For GPUs and NVSwitches
/// the kind is `gpu` and the description says what the process is; for all other functions the kind
/// is `unknown`.
std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes);

/// A process that has a character device of a function open.
struct DeviceFileUse {
  PciAddress function;
  const Process* process = nullptr;
  std::string file;  ///< `/dev/nvidia0`; not printable
};

/// Processes that have character devices of these functions open: a GPU's (`/dev/nvidia0`,
/// `/dev/dri/card1`), an NVSwitch's, a clock's (`/dev/ptp3`). Each process is listed once per
/// function. RDMA and VFIO files are excluded; others report their users. Files are identified by
/// device number, because a container may have them under any name.
std::vector<DeviceFileUse> deviceFileUses(const Root& root,
                                          const std::vector<FunctionFacts>& functions,
                                          const std::vector<Process>& processes);

// block_holders.cpp

/// Uses of the function's block devices.
std::vector<Holder> blockHolders(const Root& root, const FunctionFacts& function,
                                 const MountTable& mounts, const std::vector<Process>& processes);

/// Uses of the block devices (disks and partitions) below the device at `path`, which is relative
/// to /sys/devices: mounted in our mount namespace, swap, part of a device mapper or md device, or
/// backing a loop device. One printable text each, at most 16.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path);

/// Also checks every mount namespace in `mounts`, and the processes that have one of the block
/// devices open.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path,
                                       const MountTable& mounts,
                                       const std::vector<Process>& processes);

// netdev_holders.cpp

/// Uses of the function's netdevs. A netdev in our namespace is idle when it is down and has no
/// master, no addresses and no devices on top. A netdev in another namespace always counts as in
/// use, because it was moved there deliberately.
std::vector<Holder> netdevHolders(const FunctionFacts& function, const LinkSurvey& survey);

/// Whether RDMA devices of other network namespaces are visible to this process (`rdma system`:
/// netns shared or exclusive).
enum class RdmaVisibility { all, ownNamespace };

/// Does not query hosts without RDMA devices, because that would load ib_core.
RdmaVisibility readRdmaVisibility(const Root& root, std::chrono::milliseconds deadline);

/// Reports a function with a host driver whose users are not observable: its driver exposes it to
/// programs, a virtual device was created on it, or it should have a netdev but none is found.
std::vector<Holder> unknownHolders(const FunctionFacts& function, const LinkSurvey& survey,
                                   RdmaVisibility rdma);

// rdma_holders.cpp

/// Users of the RDMA devices of these functions, in the order of the functions: of the functions'
/// own devices, and of SoftRoCE links on their netdevs. Where users are not observable, the holder
/// has the kind `unknown`.
std::vector<Holder> rdmaHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                const std::vector<Process>& processes,
                                std::chrono::milliseconds deadline);

/// Processes that have a device file of this RDMA device open (uverbs, umad, issm).
std::vector<Process> processesWithDeviceFiles(const Root& root, const std::string& device,
                                              const std::vector<Process>& processes);

/// A process or kernel module that owns a resource of an RDMA device.
struct RdmaUser {
  unsigned process = 0;     ///< 0: the kernel, or a process that is not visible
  std::string description;  ///< `process 4711 (ib_write_bw)`; printable
};

/// Users of an RDMA device: owners of a context, queue pair, memory region or protection domain.
struct RdmaUse {
  std::vector<RdmaUser> users;
  std::string error;  ///< the reason why the list may be incomplete; empty: it is complete
};

/// Users of each of these devices (the kernel's numbers). Where programs have contexts, only they
/// are listed.
std::vector<RdmaUse> readRdmaUse(const Root& root, const std::vector<std::uint32_t>& numbers,
                                 std::chrono::milliseconds deadline);

/// Descriptions of the users of one device. Throws Error when they are not observable, so that the
/// device is not mistaken for unused.
std::vector<std::string> rdmaUsers(const Root& root, std::uint32_t number,
                                   std::chrono::milliseconds deadline);

}  // namespace vfpass::host
