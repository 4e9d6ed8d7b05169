#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan/check_function.hpp"

namespace vfpass::plan {

/// How to give these functions to the same guest as an entry of `gpus:`, with lines that can be
/// pasted into the mapping; ends where another way may follow (`...; or `). Empty when one of them
/// is a bridge, which no guest can get. Names say what a function is (`gpu0-audio`), and no entry
/// of the mapping has them.
std::string giveTogether(const std::vector<GroupPeer>& functions, const FunctionTerms& terms);

}  // namespace vfpass::plan
