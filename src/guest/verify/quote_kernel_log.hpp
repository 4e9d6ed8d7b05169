#pragma once

#include <string>
#include <vector>

#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Adds to each failed finding of the guest the last line of the guest's kernel log that may
/// explain it, if there is one. `log`: untrusted. Pure.
void quoteKernelLog(std::vector<Finding>& findings, const std::vector<std::string>& log);

}  // namespace vfpass::verify
