#pragma once

#include <chrono>
#include <vector>

#include "kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Function-level resets through sysfs, all at the same time. A function that knows no reset is
/// left as it is. One Error names every function that failed; it is a TimeoutError when one of them
/// did not end before the deadline.
void resetFunctions(const Root& root, KernelWriter& writer,
                    const std::vector<PciAddress>& functions, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
