#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "located_tree.hpp"

namespace vfpass::config {

/// Why a text without quotes is refused: YAML readers disagree on what number it is. yaml-cpp reads
/// `010` as 8 and `0x64` as 100, YAML 1.1 reads `12:30` as 750 and `1_000` as 1000. The answer
/// completes "looks like ..."; nullopt for a text that every reader takes alike.
std::optional<std::string> ambiguousNumber(std::string_view text);

/// Sets kind and value of a node from a text without quotes. `yes`, `no`, `on` and `off` are
/// booleans, as for yaml-cpp and netplan.
void classifyPlainScalar(std::string_view text, Node& node);

}  // namespace vfpass::config
