#pragma once

#include <optional>
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

}  // namespace vfpass
