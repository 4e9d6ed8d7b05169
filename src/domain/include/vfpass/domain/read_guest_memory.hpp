#pragma once

#include <string_view>

#include "vfpass/guest_memory.hpp"

namespace vfpass::domain {

/// Memory size, limit and device count of a domain XML. An invalid size is read as 0, an invalid
/// limit as no limit. Throws Error (ExitCode::badInput) if the text is not a domain.
GuestMemory guestMemory(std::string_view xml);

}  // namespace vfpass::domain
