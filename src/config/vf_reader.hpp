#pragma once

#include <set>
#include <string>

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// What an entry of `vfs:` refers to elsewhere in its file.
struct MappingContext {
  std::set<std::string> gpuNames;
  std::set<Allowance> allow;
};

/// Reads one entry of `vfs:` and checks what a schema cannot say. Values that were refused already
/// are passed over, so that all mistakes of a file come at once.
MappedVf readVf(Node& node, const MappingContext& context, ProblemList& problems);

}  // namespace vfpass::config
