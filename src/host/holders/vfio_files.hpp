#pragma once

#include <string>
#include <vector>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The files by which a function is used through VFIO, whole paths: its IOMMU group's
/// (`/dev/vfio/12`, `/dev/vfio/noiommu-12`), which stand for every device of the group, and its own
/// (`/dev/vfio/devices/vfio3`, which iommufd uses since Linux 6.6).
std::vector<std::string> vfioFilesOf(const Root& root, const PciAddress& function);

/// The process's command line, at most 64 KiB: a zero byte behind each argument.
std::string readCommandLine(const Root& root, const Process& process);

}  // namespace vfpass::host
