#pragma once

#include <optional>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// `gpu-bar`: whether each GPU's BAR1, through which NICs reach its memory, has an address in the
/// guest (failed if not), and is as large as the memory (a warning if not). Waived if no GPU has
/// such a BAR. nullopt for an older probe. Pure.
std::optional<Finding> judgeGpuBars(const GuestView& view);

}  // namespace vfpass::verify
