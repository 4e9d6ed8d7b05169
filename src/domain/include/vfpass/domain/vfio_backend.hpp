#pragma once

#include <string_view>

#include "vfpass/peer_mapping.hpp"

namespace vfpass::domain {

/// The VFIO backend that a domain XML requests: iommufd when any PCI `<hostdev>` uses it, by
/// `<driver iommufd='yes'/>` (libvirt 12.1) or, without that attribute, by the domain's `<iommufd
/// enabled='yes'/>` (12.2). libvirt defaults to a container. Throws Error (ExitCode::badInput) if
/// the text is not a domain.
VfioBackend configuredBackend(std::string_view xml);

}  // namespace vfpass::domain
