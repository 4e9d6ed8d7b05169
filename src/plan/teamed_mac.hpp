#pragma once

#include <optional>
#include <vector>

#include "vfpass/plan/objection.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The MAC that the VF of this entry (with `teaming:`) must have: that of its standby interface in
/// the domain, because the guest pairs the two by their MAC. nullopt with an objection if the
/// domain has no such interface, if it cannot be a standby, or if the entry states another MAC.
std::optional<MacAddress> teamedMac(const AttachInput& input, const MappedVf& entry,
                                    std::vector<Objection>& objections);

}  // namespace vfpass::plan
