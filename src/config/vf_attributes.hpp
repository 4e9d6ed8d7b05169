#pragma once

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// Reads the attributes that the PF's driver is asked to set, with their defaults, and `required:`.
void readAttributes(Node& node, MappedVf& vf, ProblemList& problems);

}  // namespace vfpass::config
