#pragma once

#include <optional>

#include "vfpass/hand_over.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Kernel::errorCounts(), from `aer_dev_fatal`, `aer_dev_nonfatal` and `aer_dev_correctable` of the
/// function and of the port above it. Both uncorrectable files count, because the severity of an
/// error is a register that a guest can write.
std::optional<ErrorCounts> readErrorCounts(const Root& root, const PciAddress& function);

/// Kernel::xidLog(). The messages are those of NVIDIA's driver on this host: it has a GPU only
/// while it is bound to it, and never sees what happens in a guest.
std::optional<XidLog> readXidLog(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
