#pragma once

#include <pugixml.hpp>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// Differences between a device of the domain XML and the element that attach writes for its lease,
/// one line each. Ignores only what libvirt adds by itself and what affects nothing but the guest:
/// boot order, ACPI index, and whether the guest sees the device's own ROM.
std::vector<std::string> compareElement(pugi::xml_node found, const Lease& lease);

}  // namespace vfpass::domain
