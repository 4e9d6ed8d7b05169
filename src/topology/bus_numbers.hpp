#pragma once

#include <map>

#include "vfpass/guest_tree.hpp"

namespace vfpass::topology {

/// The bus behind each PCI controller, by controller index, in the numbers that the guest's
/// firmware gives (guest_topology.hpp). Controllers without an address, and those below them, are
/// left out.
std::map<unsigned, unsigned> busNumbersOf(const GuestMachine& machine);

}  // namespace vfpass::topology
