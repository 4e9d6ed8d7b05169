#pragma once

#include <vector>

#include "choose_place.hpp"
#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// The leases that `gpus:` asks for, in its order, with an objection for each function that cannot
/// be had. An entry keeps guest address and originals of its earlier lease.
std::vector<Lease> decideFunctions(const AttachInput& input, Places& places,
                                   std::vector<Objection>& objections);

}  // namespace vfpass::plan
