#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass {

/// Validates the name of a kernel driver, or the empty text (no driver): at most 63 letters,
/// digits,
/// `_` and `-`. The name becomes part of a sysfs path and an argument of modprobe. nullopt for
/// anything else.
std::optional<std::string> parseDriverName(std::string_view text);

/// True for vfio-pci and the supported vendor variants: those for mlx5 VFs and for Grace GPUs.
/// vfpass loads no other module for a guest's device.
bool isVfioDriver(std::string_view driver);

}  // namespace vfpass
