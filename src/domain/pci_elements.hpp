#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "vfpass/guest_tree.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::domain {

/// Reads domain, bus, slot and function of an `<address>` element as libvirt does: hexadecimal with
/// `0x`, octal with a leading 0, otherwise decimal; a missing attribute is 0. nullopt for anything
/// else and for values out of range.
std::optional<PciAddress> readPciAddress(pugi::xml_node address);

/// Writes the four attributes in libvirt's format.
void writePciAddress(pugi::xml_node address, const PciAddress& value);

/// The device's PCI address in the guest; nullopt if it has none yet or is not on PCI.
std::optional<PciAddress> guestAddressOf(pugi::xml_node device);

/// Sets an attribute, adding it if it is missing.
void setAttribute(pugi::xml_node node, const char* name, const char* value);

/// Parses a number of at most 255; nullopt otherwise.
std::optional<unsigned> smallNumber(std::string_view text);

/// Reads a `<controller type='pci'>` with this index. Leaves out invalid values.
PciController readController(pugi::xml_node device, unsigned index);

}  // namespace vfpass::domain
