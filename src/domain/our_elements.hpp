#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// True for an element of our namespace with this local name, whatever its prefix.
bool isOurElement(pugi::xml_node node, std::string_view localName);

/// Our elements in `<metadata>`; a sound domain has one or none.
std::vector<pugi::xml_node> ourMetadata(const Document& document);

/// Devices and root ports with an alias of ours, in document order.
std::vector<pugi::xml_node> ourDevices(const Document& document);

/// True for a PCI controller; among our elements these are the root ports.
bool isPciController(pugi::xml_node device);

/// The index attribute of a controller; nullopt when it has none that is a number.
std::optional<unsigned> controllerIndex(pugi::xml_node controller);

/// The `<address>` of the host function that a device claims (`<hostdev type='pci'>`, `<interface
/// type='hostdev'>`, NVMe disks): a null node when it is missing, nullopt for other devices.
std::optional<pugi::xml_node> hostAddressElement(pugi::xml_node device);

/// The alias of the virtio interface that a lease's device is teamed with.
std::string teamingAlias(const std::string& partner);

}  // namespace vfpass::domain
