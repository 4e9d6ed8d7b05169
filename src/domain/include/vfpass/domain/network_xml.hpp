#pragma once

#include <string_view>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass::domain {

/// Host PCI functions that an active libvirt network hands out to domains (`<forward
/// mode='hostdev'>`): its live XML lists the VFs of its PF. Empty for any other network. Throws
/// Error (ExitCode::badInput) for what is no network XML.
std::vector<PciAddress> poolDevices(std::string_view networkXml);

}  // namespace vfpass::domain
