#pragma once

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::hook {

/// The error and its remedy in one line without control characters: libvirt puts the hook's stderr
/// into its own error message.
std::string errorLine(const Error& error);

}  // namespace vfpass::hook
