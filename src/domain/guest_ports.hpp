#pragma once

#include <vector>

#include "document.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

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

}  // namespace vfpass::domain
