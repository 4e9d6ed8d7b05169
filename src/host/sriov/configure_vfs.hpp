#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sriov/vf_port.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::host {

/// Names of the PF whose VFs are configured, for messages.
struct PortNames {
  std::string netdev;
  std::string driver;
  /// This process may configure links (CAP_NET_ADMIN), so EPERM comes from the driver.
  bool privileged = false;
  std::string deniedRemedy = {};  ///< for that EPERM
};

/// Which attributes are sent, see Kernel::restoreVfs().
enum class Sent { differing, all };

/// Sets the attributes of the VFs. All attributes that differ go into one message. If the driver
/// refuses it, each attribute is sent alone; only the answer to that shows whether it took effect,
/// because mlx5 stores and reports some refused values. A refused attribute gets its previous value
/// again. `deadline` is the time within which an accepted value must read back; only a GUID may
/// stay unreported. EPERM is a refusal, too, if this process is privileged. When a required
/// attribute is refused, all changes are rolled back and Error is thrown. Other refused attributes
/// are returned. `otherwise` is
/// ConfigureVfs::otherwise.
std::vector<RefusedAttribute> configureVfs(VfPort& port, const std::vector<VfChange>& changes,
                                           const PortNames& names,
                                           std::chrono::milliseconds deadline,
                                           const VfSettings& otherwise = {},
                                           Sent sent = Sent::differing);

}  // namespace vfpass::host
