#pragma once

#include <cstdint>
#include <optional>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The sum of the function's fatal and non-fatal errors (`aer_dev_fatal`, `aer_dev_nonfatal`); see
/// Kernel::uncorrectedErrors().
std::optional<std::uint64_t> readUncorrectedErrors(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
