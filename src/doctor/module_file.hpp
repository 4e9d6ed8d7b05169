#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "view.hpp"

namespace vfpass::doctor {

/// Whether a module's file for the running kernel ends in a signature. Whose it is is not said.
enum class Signature { none, there, unseen };

/// `module` as the kernel writes it; its file can have `-` for `_`. Compressed files are unseen.
Signature signatureOf(const View& view, const std::string& module);

/// When that file was written, in seconds since 1970; nullopt: there is none, or it is not seen.
std::optional<std::uint64_t> buildTime(const View& view, const std::string& module);

}  // namespace vfpass::doctor
