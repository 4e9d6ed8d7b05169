#pragma once

#include <string>
#include <vector>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// A function and the driver that it is bound to.
struct DrivenFunction {
  PciAddress address;
  std::string driver;
};

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
                                          const std::vector<DrivenFunction>& functions,
                                          const std::vector<Process>& processes);

}  // namespace vfpass::host
