#pragma once

#include <vector>

#include "vfpass/claim.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Problems of a plan whose steps touch a device in the live XML of another active domain. The
/// kernel shows no holder until that domain's QEMU opens the device; libvirt lists the device as
/// soon as the start begins.
std::vector<Objection> objectToActiveClaims(const Plan& plan, const Inventory& inventory,
                                            const std::vector<DomainSummary>& domains);

}  // namespace vfpass::plan
