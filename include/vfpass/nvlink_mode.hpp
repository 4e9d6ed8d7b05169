#pragma once

#include <optional>
#include <string_view>

namespace vfpass {

/// NVLink mode of a guest's GPUs on a board with NVSwitches. Such a GPU initializes only when the
/// fabric is set up, or when its driver disables NVLink (otherwise: CUDA error 802).
enum class NvlinkMode {
  all,        ///< the guest has every GPU and NVSwitch of the board and runs the fabric manager
  partition,  ///< a fabric manager outside the guest activates a partition of these GPUs
  disabled    ///< the guest's driver does not use NVLink (NVreg_NvLinkDisable=1)
};

std::string_view toString(NvlinkMode mode);  ///< all, partition, disabled
std::optional<NvlinkMode> parseNvlinkMode(std::string_view name);

}  // namespace vfpass
