#pragma once

#include <vector>

#include "document.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// Our root ports that must stay although their lease goes: a device of somebody else sits on their
/// bus, or they are function 0 of a slot with such a port (without function 0 a slot is not seen).
std::vector<pugi::xml_node> portsInForeignUse(const Document& document);

/// True for the root port of this lease: its alias, index, place and multifunction flag.
bool isPortOf(pugi::xml_node device, const Lease& lease);

}  // namespace vfpass::domain
