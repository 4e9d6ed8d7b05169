#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace vfpass {

/// Major and minor.
using Version = std::pair<unsigned, unsigned>;

/// Versions of the daemon and of the QEMU that it starts; nullopt: unknown, as for any driver other
/// than QEMU's.
struct HypervisorVersions {
  std::optional<Version> libvirt;
  std::optional<Version> qemu;
};

/// The first two numbers of a text such as `6.1.0-30-amd64`; nullopt when it does not begin with
/// two numbers.
std::optional<Version> leadingVersion(std::string_view text);

/// True when `version` is known and lower than `other`.
bool isOlder(const std::optional<Version>& version, const Version& other);

/// `9.0`, or `of unknown version`.
std::string versionText(const std::optional<Version>& version);

}  // namespace vfpass
