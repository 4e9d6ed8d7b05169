#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "located_tree.hpp"

namespace vfpass::config {

/// The kind of number that an unquoted text may be to some YAML readers and not to others, as a
/// phrase that completes "looks like ..."; nullopt if all readers agree. yaml-cpp reads `010` as 8
/// and `0x64` as 100; YAML 1.1 reads `12:30` as 750 and `1_000` as 1000.
std::optional<std::string> ambiguousNumber(std::string_view text);

/// Sets kind and value of a node from an unquoted text. `yes`, `no`, `on` and `off` are booleans,
/// as in yaml-cpp and netplan.
void classifyPlainScalar(std::string_view text, Node& node);

}  // namespace vfpass::config
