#pragma once

#include <optional>

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// Reads `pf:`. nullopt if it is missing or was refused.
std::optional<PfSelector> readPfSelector(Node* node, ProblemList& problems);

/// Reads a PCI address that the schema accepted; nullopt if it was refused.
std::optional<PciAddress> readPciAddress(Node* node, ProblemList& problems);

}  // namespace vfpass::config
