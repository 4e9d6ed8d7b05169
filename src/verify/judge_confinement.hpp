#pragma once

#include <string>

#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// A failed finding that relies on what the probe could open or list is not observable if SELinux
/// confined the probe (`context`, empty: it did not): the device may be sound. Findings of the host
/// and about transferred bytes stay as they are.
Finding withConfinement(Finding finding, const std::string& context);

}  // namespace vfpass::verify
