#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "vf_port.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::host {

/// Whose VFs are set, for messages.
struct PortNames {
  std::string netdev;
  std::string driver;
  /// This process may configure links (CAP_NET_ADMIN), so that EPERM is the driver's own answer.
  bool privileged = false;
};

/// Brings the VFs to what is wanted. One message for all that differs; only when the driver refuses
/// something, attribute by attribute, to name the one. `deadline`: how long a driver may take until
/// an accepted value reads back. A refused required attribute: what was changed is put back and
/// Error is thrown. Others are returned.
std::vector<RefusedAttribute> configureVfs(VfPort& port, const std::vector<VfChange>& changes,
                                           const PortNames& names,
                                           std::chrono::milliseconds deadline);

}  // namespace vfpass::host
