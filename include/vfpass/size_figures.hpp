#pragma once

namespace vfpass {

/// Figure::source of the figures of `vfpass verify --sizes`: one for each operation and message
/// size.
inline constexpr const char* sizeFigures = "vfpass-probe --preset sizes";

}  // namespace vfpass
