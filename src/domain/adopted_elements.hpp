#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

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
