#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::doctor {

/// The subject of a message of the kernel.
enum class KernelTopic {
  iommu,       ///< the IOMMU of the host
  iommuFault,  ///< a device's access that the IOMMU has refused
  resources,   ///< memory or bus numbers for VFs and BARs
  mlx5,        ///< the driver or firmware of a ConnectX
  link,        ///< PCI Express: its bandwidth, and errors (AER, DPC)
  gpu,         ///< a GPU or its driver: NVIDIA's Xid, amdgpu
  reset,       ///< resets and power states of a device
  peerMemory,  ///< nvidia_peermem
  memoryLock   ///< the limit for locked memory
};

/// A message that concerns devices of guests.
struct KernelLine {
  KernelTopic topic = KernelTopic::iommu;
  bool serious = false;  ///< by itself a reason to look at the device
  std::set<PciAddress> devices;
  std::string text;  ///< printable, of bounded length
};

/// The line as a message; nullopt if it concerns none of the topics. `text` may begin with a time
/// in brackets, as dmesg prints it.
std::optional<KernelLine> readKernelLine(std::string_view text);

/// The messages that readKernelLine knows, as lines, oldest first: of each topic and device the
/// last few, the serious ones before the others. nullopt if the log cannot be read.
std::optional<std::string> relevantKernelLog(const host::Root& root);

/// Reads what relevantKernelLog returned. For lines of this boot: the kernel's buffer has no
/// others.
std::vector<KernelLine> readKernelLines(std::string_view log);

/// The last line about one of these devices: of the serious ones, if there is one, otherwise of
/// the others. Empty if there is none.
std::string lastLineAbout(const std::vector<KernelLine>& lines,
                          const std::set<PciAddress>& devices);

}  // namespace vfpass::doctor
