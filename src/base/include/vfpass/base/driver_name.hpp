#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass {

/// The name of a kernel driver, or nothing (no driver): at most 63 letters, digits, `_` and `-`.
/// Such a name becomes part of a sysfs path and an argument of modprobe. nullopt for anything else.
std::optional<std::string> parseDriverName(std::string_view text);

}  // namespace vfpass
