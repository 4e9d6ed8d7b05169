#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// True for a child of one of our elements that is also of our namespace and has this local name.
/// Looks at the parent, but no further: the time for all children must not grow with the number of
/// attributes above them.
bool isOurChild(pugi::xml_node node, std::string_view localName);

/// Our elements in `<metadata>`; a valid domain has at most one.
std::vector<pugi::xml_node> ourMetadata(const Document& document);

/// Devices and controllers with one of our aliases, in document order.
std::vector<pugi::xml_node> ourDevices(const Document& document);

/// True for a PCI controller; ours are root ports and the controllers of mirrored trees.
bool isPciController(pugi::xml_node device);

/// The index attribute of a controller; nullopt if it is missing or not a number up to 255.
std::optional<unsigned> controllerIndex(pugi::xml_node controller);

/// The `<address>` of the host function that a device claims (`<hostdev type='pci'>`, `<interface
/// type='hostdev'>`, NVMe disks): a null node if it is missing, nullopt for other devices.
std::optional<pugi::xml_node> hostAddressElement(pugi::xml_node device);

/// Our controllers that must stay although their lease ends: another device sits on their bus or
/// below it, or they are function 0 of a slot with such a port (a guest does not scan a slot
/// without function 0).
std::vector<pugi::xml_node> portsInForeignUse(const Document& document);

/// True for the root port of this lease: same alias, index, address and multifunction flag.
bool isPortOf(pugi::xml_node device, const Lease& lease);

/// True for this controller of a mirrored tree, with all attributes of its target.
bool isController(pugi::xml_node device, const GuestController& controller);

/// The controllers of the mirrored tree that these leases name, without duplicates, by index. Two
/// different controllers with the same index are both returned.
std::vector<GuestController> controllersOf(const std::vector<Lease>& leases);

/// The first `<hostdev>` or `<interface>` without an alias of ours that claims the lease's device;
/// otherwise one with such an alias, which only a running domain has (runningHostElements()). A
/// null node if there is none.
pugi::xml_node findAdopted(const Document& document, const Lease& lease);

/// The leases in the domain's metadata whose element is the domain's own; none if the metadata
/// cannot be read. Anybody who can edit the domain can write them.
std::vector<Lease> adoptedLeasesIn(const Document& document);

/// The inverse of withDevicesKept() but for the metadata; nullopt if the XML has our metadata, or
/// no kept device of these leases.
std::optional<std::string> withDevicesTakenBack(std::string_view xml,
                                                const std::vector<Lease>& leases);

/// Differences between a device of the XML and the element of its lease, one line each. Ignores
/// only what libvirt adds by itself and what affects nothing but the guest: boot order, ACPI index,
/// and whether the guest sees the device's own ROM.
std::vector<std::string> compareElement(pugi::xml_node found, const Lease& lease);

}  // namespace vfpass::domain
