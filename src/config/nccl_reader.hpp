#pragma once

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// Reads `nccl:` of a mapping. The schema has checked the names of variables and the types of
/// values; this refuses variables that something else sets, and values that NCCL would not read.
NcclSettings readNccl(Node& root, ProblemList& problems);

}  // namespace vfpass::config
