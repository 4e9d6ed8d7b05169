#pragma once

#include <string_view>

#include "vfpass/peer_mapping.hpp"

namespace vfpass::domain {

/// What a domain XML asks for: iommufd when any PCI `<hostdev>` uses it, by `<driver
/// iommufd='yes'/>` (libvirt 12.1) or, where that says nothing, by the domain's `<iommufd
/// enabled='yes'/>` (12.2). libvirt's own default is a container. Throws Error
/// (ExitCode::badInput) if the text is not a domain.
VfioBackend configuredBackend(std::string_view xml);

}  // namespace vfpass::domain
