#pragma once

#include <string>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

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

}  // namespace vfpass::host
