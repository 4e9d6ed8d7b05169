#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan/check_function.hpp"

namespace vfpass::plan {

/// The beginning of a remedy: to pass these functions to the same guest as an entry of
/// `functions:`, with lines to paste into the mapping. Ends with "or ", so that an alternative can
/// follow. Empty if one of them is a bridge, which cannot be passed to a guest. The proposed names
/// tell the kind of the function (`gpu0-audio`) and differ from all entries of the mapping.
std::string companionRemedy(const std::vector<GroupPeer>& functions, const FunctionTerms& terms);

}  // namespace vfpass::plan
