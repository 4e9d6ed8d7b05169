#pragma once

#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/verify/judge_baseline.hpp"

namespace vfpass::verify {

/// What differs between this VF's guest and the host itself during its baseline, most likely cause
/// first. `lowOnGpu`: a figure of GPU memory is low, so that the path to the GPU counts.
std::vector<BaselineFactor> baselineFactors(const BaselineSubject& subject,
                                            const VerifyReport& report, bool lowOnGpu);

}  // namespace vfpass::verify
