#pragma once

#include <chrono>

#include "kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Function-level reset through sysfs. A function that knows no reset is left as it is.
void resetFunction(const Root& root, KernelWriter& writer, const PciAddress& function,
                   std::chrono::milliseconds deadline);

}  // namespace vfpass::host
