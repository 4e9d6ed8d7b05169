#pragma once

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// Reads the attributes to be set through the PF's driver, with their defaults, and `required:`.
void readAttributes(Node& node, MappedVf& vf, ProblemList& problems);

}  // namespace vfpass::config
