#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "view.hpp"

namespace vfpass::doctor {

/// Whether a module's file for the running kernel ends in a signature, no matter whose.
enum class Signature { absent, present, unknown };

/// `module` as the kernel spells it; the file's name can have `-` for `_`. Compressed files are not
/// read.
Signature signatureOf(const View& view, const std::string& module);

/// Modification time of that file in seconds since 1970; nullopt if it does not exist or is
/// unreadable.
std::optional<std::uint64_t> buildTime(const View& view, const std::string& module);

}  // namespace vfpass::doctor
