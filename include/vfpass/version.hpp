#pragma once

#include <optional>
#include <utility>

namespace vfpass {

/// Major and minor.
using Version = std::pair<unsigned, unsigned>;

/// Of a libvirt daemon and of the QEMU that it starts.
struct HypervisorVersions {
  Version libvirt;
  std::optional<Version> qemu;  ///< nullopt: another hypervisor, or libvirt cannot tell
};

}  // namespace vfpass
