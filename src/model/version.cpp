#include "vfpass/version.hpp"

#include <charconv>

namespace vfpass {

std::optional<Version> leadingVersion(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return std::nullopt;
  }
  return std::from_chars(major.ptr + 1, end, version.second).ec == std::errc()
             ? std::optional(version)
             : std::nullopt;
}

bool isOlder(const std::optional<Version>& version, const Version& other) {
  return version && *version < other;
}

std::string versionText(const std::optional<Version>& version) {
  return version ? std::to_string(version->first) + "." + std::to_string(version->second)
                 : "of unknown version";
}

}  // namespace vfpass
