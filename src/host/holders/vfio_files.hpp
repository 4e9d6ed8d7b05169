#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Device files of single functions, as opposed to groups.
inline constexpr std::string_view deviceFolder = "/dev/vfio/devices/";

/// The device files that give access to a function through VFIO: those of its IOMMU group
/// (`/dev/vfio/12`, `/dev/vfio/noiommu-12`), which cover every device of the group, and its own
/// (`/dev/vfio/devices/vfio3`, which iommufd uses since Linux 6.6).
std::vector<DeviceFile> vfioFilesOf(const Root& root, const PciAddress& function);

/// Those of all functions.
std::vector<DeviceFile> allVfioFiles(const Root& root);

}  // namespace vfpass::host
