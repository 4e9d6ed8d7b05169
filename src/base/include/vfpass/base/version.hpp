#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/version.hpp"

namespace vfpass {

/// The first two numbers of `6.1.0-30-amd64`; nullopt where the text does not begin with them.
std::optional<Version> leadingVersion(std::string_view text);

/// Known, and lower.
bool isOlder(const std::optional<Version>& version, const Version& other);

/// `9.0`, or `of unknown version`.
std::string versionText(const std::optional<Version>& version);

}  // namespace vfpass
