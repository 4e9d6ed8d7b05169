#pragma once

#include <string_view>

namespace vfpass {

/// Whether this can be the name of a kernel driver: 1 to 63 letters, digits, `_` and `-`, not
/// beginning with `-`. The name becomes part of a sysfs path and an argument of modprobe.
bool isDriverName(std::string_view name);

/// True for vfio-pci and the supported vendor variants: those for mlx5 VFs and for Grace GPUs.
/// vfpass loads no other module for a guest's device.
bool isVfioDriver(std::string_view driver);

}  // namespace vfpass
