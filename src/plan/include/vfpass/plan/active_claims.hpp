#pragma once

#include <vector>

#include "vfpass/claim.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// The objections to a plan whose steps touch a device that another active domain has in its live
/// XML. The kernel shows such a domain only once its QEMU has opened the device; libvirt knows it
/// from the first moment of the start.
std::vector<Objection> objectToActiveClaims(const Plan& plan, const Inventory& inventory,
                                            const std::vector<DomainSummary>& domains);

}  // namespace vfpass::plan
