#pragma once

#include <set>
#include <string>

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// The parts of the mapping that an entry of `vfs:` refers to.
struct MappingContext {
  std::set<std::string> functionNames;
  std::set<Allowance> allow;
};

/// Reads one entry of `vfs:` and checks what a schema cannot express. Skips values that were
/// already refused, so that all problems of a file are reported at once.
MappedVf readVf(Node& node, const MappingContext& context, ProblemList& problems);

}  // namespace vfpass::config
