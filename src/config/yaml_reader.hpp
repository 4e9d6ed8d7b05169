#pragma once

#include <optional>
#include <string>

#include "located_tree.hpp"
#include "problem_list.hpp"

namespace vfpass::config {

/// Reads one YAML document into a tree with places. Refuses what yaml-cpp accepts but other readers
/// may interpret differently: duplicate keys, aliases, anchors, tags, several documents, ambiguous
/// numbers, control characters. Depth and number of values are limited. Returns nullopt, after
/// reporting a problem, if there is no tree.
std::optional<Node> readYaml(const std::string& text, ProblemList& problems);

}  // namespace vfpass::config
