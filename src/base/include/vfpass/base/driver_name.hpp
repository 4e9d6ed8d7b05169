#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass {

/// The name of a kernel driver, or nothing (no driver): at most 63 letters, digits, `_` and `-`.
/// Such a name becomes part of a sysfs path and an argument of modprobe. nullopt for anything else.
std::optional<std::string> parseDriverName(std::string_view text);

/// vfio-pci or a vendor's variant of it that this project knows: those of mlx5 VFs and of Grace
/// GPUs. No other name makes vfpass load a module for a guest's device.
bool isVfioDriver(std::string_view driver);

}  // namespace vfpass
