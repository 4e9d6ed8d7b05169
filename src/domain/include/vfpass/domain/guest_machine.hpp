#pragma once

#include <string_view>

#include "vfpass/guest_tree.hpp"

namespace vfpass::domain {

/// PCI buses, passed-through devices and NUMA cells of a domain XML. Leaves out hostdevs with an
/// invalid host address, cells without an id and invalid node sets. Throws Error
/// (ExitCode::badInput) if the text is not a domain.
GuestMachine readGuestMachine(std::string_view xml);

/// The machine without our devices and controllers: what the guest keeps after a detach.
GuestMachine withoutOurs(GuestMachine machine);

}  // namespace vfpass::domain
