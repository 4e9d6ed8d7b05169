#pragma once

#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::commands {

/// The units that host.yaml and these mappings need.
std::vector<doctor::RequiredUnit> requiredUnits(const config::Configuration& configuration,
                                                const std::vector<Mapping>& mappings);

/// What has to run on this host besides vfpass for VMs with these mappings, and does not: the qemu
/// hook and the required units, one line each with its remedy. Nothing for a captured tree.
std::vector<std::string> missingServices(Session& session, const std::vector<Mapping>& mappings);

}  // namespace vfpass::commands
