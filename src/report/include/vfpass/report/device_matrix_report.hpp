#pragma once

#include <iosfwd>
#include <string>

#include "vfpass/report/style.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::report {

/// A title line, then the matrix in the terms of `nvidia-smi topo -m`. Writes nothing for fewer
/// than two devices.
void writeDeviceMatrix(std::ostream& out, const std::string& title,
                       const topology::DeviceMatrix& matrix, const Style& style);

}  // namespace vfpass::report
