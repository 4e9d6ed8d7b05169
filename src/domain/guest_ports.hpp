#pragma once

#include <vector>

#include "document.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// Our controllers that must stay although their lease goes: a device of somebody else sits on
/// their bus or further below, or they are function 0 of a slot with such a port (without function
/// 0 a slot is not seen).
std::vector<pugi::xml_node> portsInForeignUse(const Document& document);

/// True for the root port of this lease: its alias, index, place and multifunction flag.
bool isPortOf(pugi::xml_node device, const Lease& lease);

/// True for this controller of a mirrored tree, with all that its target says.
bool isController(pugi::xml_node device, const GuestController& controller);

/// The controllers of the mirrored tree that these leases name, each once, by index. Of two that
/// share an index and differ, both.
std::vector<GuestController> controllersOf(const std::vector<Lease>& leases);

}  // namespace vfpass::domain
