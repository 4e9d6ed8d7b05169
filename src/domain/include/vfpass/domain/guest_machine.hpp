#pragma once

#include <string_view>

#include "vfpass/guest_tree.hpp"

namespace vfpass::domain {

/// PCI buses, passed devices and NUMA cells of a domain XML. Leaves out hostdevs whose host address
/// cannot be read, cells without an id and invalid node sets. Throws Error (ExitCode::badInput) if
/// the text is not a domain.
GuestMachine readGuestMachine(std::string_view xml);

/// The same without every device and port of ours: what the guest keeps when vfpass leaves.
GuestMachine withoutOurs(GuestMachine machine);

}  // namespace vfpass::domain
