#pragma once

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// True while the database still holds the leases as the first `done` steps recorded them. False: a
/// start (the hook's prepare takes over), or another command, has gone on from them, and this
/// plan's host steps are not to be undone or continued any more.
bool leasesAreOurs(const Plan& plan, std::size_t done, const Tools& tools);

/// After VFs were created: they are where the leases say, and can be given away. Throws otherwise.
void checkCreatedVfs(const CreateVfs& created, const Plan& plan, Tools& tools);

}  // namespace vfpass::apply
