#pragma once

#include <optional>
#include <string>

#include "located_tree.hpp"
#include "problem_list.hpp"

namespace vfpass::config {

/// Reads one YAML document into a tree with places. Refuses what yaml-cpp lets through and what
/// would make a file mean something else to another reader: duplicate keys, aliases, anchors, tags,
/// several documents, ambiguous numbers, control characters. Bounded in depth and count.
/// nullopt when there is no tree to look at further (a problem was reported then).
std::optional<Node> readYaml(const std::string& text, ProblemList& problems);

}  // namespace vfpass::config
