#pragma once

#include "controller_set.hpp"
#include "vfpass/guest_tree.hpp"

namespace vfpass::topology {

/// Assigns a bus number to each expander bus without one, so that all bridges below it get numbers
/// lower than the next expander bus's, and all bridges below pcie-root numbers lower than the first
/// one's. libvirt and QEMU check neither, and firmware silently loses devices otherwise. Existing
/// numbers stay. Throws NoRoom when an existing number leaves too few for the bridges now below it,
/// or when there are not enough numbers.
void numberExpanders(const GuestMachine& guest, ControllerSet& controllers);

}  // namespace vfpass::topology
