#pragma once

#include <optional>
#include <vector>

#include "choose_place.hpp"
#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// The earlier lease of this entry; nullptr when there is none.
const Lease* earlierLease(const AttachInput& input, const std::string& vfName);

/// The leases that the mapping asks for, in its order. An entry keeps VF, address, originals and
/// automatic values of its earlier lease where the mapping still allows them.
std::vector<Lease> decideLeases(const AttachInput& input, Places& places,
                                std::vector<Objection>& objections);

/// True when a lease says the same as the earlier one, apart from what time alone changes.
bool sameTerms(const Lease& earlier, const Lease& wanted);

}  // namespace vfpass::plan
