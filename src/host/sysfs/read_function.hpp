#pragma once

#include <optional>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The PCI function of any type at this address; nullopt when there is none. `model` stays empty:
/// names come from libpci, which the hook does not link.
std::optional<PciFunction> readPciFunction(const Root& root, const PciAddress& address);

}  // namespace vfpass::host
