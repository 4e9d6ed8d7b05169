#pragma once

#include <map>

#include "vfpass/guest_tree.hpp"

namespace vfpass::topology {

/// The bus behind each PCI controller, by controller index, as the guest's firmware numbers it
/// (guest_topology.hpp). Controllers without an address, and those below them, are omitted.
std::map<unsigned, unsigned> busNumbersOf(const GuestMachine& machine);

}  // namespace vfpass::topology
