#pragma once

#include "vfpass/finding.hpp"

namespace vfpass::report {

/// The finding to show first: the first failure, otherwise the first unobservable check; null if
/// there is neither.
const Finding* firstBroken(const VerifyReport& report);

}  // namespace vfpass::report
