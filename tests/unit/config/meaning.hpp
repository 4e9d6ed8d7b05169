#pragma once

#include <string>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// What a mapping means, one value per line. Values that are unset or have their default are left
/// out, so that a new member does not change the meaning of an earlier release's files.
std::string meaningOf(const Mapping& mapping);

/// The same for host.yaml, with its SoftRoCE links.
std::string meaningOfHost(const Configuration& configuration);

}  // namespace vfpass::config
