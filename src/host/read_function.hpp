#pragma once

#include <optional>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The PCI function at this address, whatever it is; nullopt when there is none. `model` stays
/// empty: names come from libpci, which the hook has not.
std::optional<PciFunction> readPciFunction(const Root& root, const PciAddress& address);

}  // namespace vfpass::host
