#pragma once

#include <chrono>
#include <vector>

#include "sysfs/kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Resets functions through sysfs, all in parallel. A function without a reset method is skipped.
/// One Error names every function that failed; it is a TimeoutError when one of the resets did not
/// finish before the deadline.
void resetFunctions(const Root& root, KernelWriter& writer,
                    const std::vector<PciAddress>& functions, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
