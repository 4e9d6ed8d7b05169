#pragma once

#include <string_view>

#include "vfpass/guest_memory.hpp"

namespace vfpass::domain {

/// Amounts that make no sense are 0, or no limit. Throws Error (ExitCode::badInput) for what is no
/// domain.
GuestMemory guestMemory(std::string_view xml);

}  // namespace vfpass::domain
