#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The interrupt vectors of the leases whose entry sets `msix-vectors`. `auto` is one per vCPU and
/// one for events, as the guest's mlx5_core asks for; entries that would get more than their PF has
/// left share what is left evenly, and `notes` says so. A running guest keeps what it has. Objects
/// to a number that the PF cannot give; an attribute that is not required is recorded as refused.
void chooseVectors(const AttachInput& input, std::vector<Lease>& leases,
                   std::vector<std::string>& notes, std::vector<Objection>& objections);

}  // namespace vfpass::plan
