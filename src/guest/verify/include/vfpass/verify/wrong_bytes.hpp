#pragma once

#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Whether data arrived with other bytes, as opposed to a transfer that could not be made. Only a
/// fault of hardware or firmware explains that.
bool hasWrongBytes(const Finding& finding);

}  // namespace vfpass::verify
