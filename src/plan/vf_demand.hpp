#pragma once

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The number of VFs that the PF has, or gets from this attach: what host.yaml requests, otherwise
/// what the mappings and leases of this host need of it. Not the card's maximum: each VF takes time
/// to create, pages of the card's memory in the host, and interrupt vectors from the other VFs.
unsigned vfCountFor(const AttachInput& input, const PhysicalFunction& pf);

}  // namespace vfpass::plan
