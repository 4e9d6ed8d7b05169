#pragma once

#include <optional>
#include <pugixml.hpp>

#include "vfpass/pci_address.hpp"

namespace vfpass::domain {

/// Reads domain, bus, slot and function of an `<address>` element as libvirt does: `0x` or decimal,
/// a missing one is 0. nullopt for anything else and for values out of range.
std::optional<PciAddress> readPciAddress(pugi::xml_node address);

/// Writes the four attributes in libvirt's spelling.
void writePciAddress(pugi::xml_node address, const PciAddress& value);

/// Where the guest sees the device; nullopt when libvirt has not placed it, or not on PCI.
std::optional<PciAddress> guestAddressOf(pugi::xml_node device);

/// Sets an attribute, adding it when the element has none.
void setAttribute(pugi::xml_node node, const char* name, const char* value);

}  // namespace vfpass::domain
