#pragma once

#include "controller_set.hpp"
#include "vfpass/guest_tree.hpp"

namespace vfpass::topology {

/// Gives each expander bus without a number one, so that every bridge below it finds a number
/// before the next expander bus's, and every bridge below pcie-root one before the first's. libvirt
/// and QEMU check neither, and firmware then loses devices without a word. Earlier numbers stay.
/// Throws NoRoom when an earlier one is too tight for what is below it now, or there are not
/// enough.
void numberExpanders(const GuestMachine& guest, ControllerSet& controllers);

}  // namespace vfpass::topology
