#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "vfpass/pci_address.hpp"
#include "vfpass/pf_settings.hpp"

namespace vfpass::host {

/// A netdev's name is for messages; it is addressed by interface index, because names change.
struct NetdevHandle {
  int index = 0;
  std::string name;
};

/// All of these talk netlink to the running kernel, need no VF list, and throw Error: when the
/// kernel refuses (with the driver's own words), when it does not answer before the deadline, and,
/// for those that set, when the value does not read back.
LinkSettings readLink(const NetdevHandle& netdev, std::chrono::milliseconds deadline);
void setMtu(const NetdevHandle& netdev, unsigned mtu, std::chrono::milliseconds deadline);
void setUp(const NetdevHandle& netdev, bool up, std::chrono::milliseconds deadline);

/// Nullopt when the mode is not observable: no devlink in the kernel, no such device there, a
/// driver without an embedded switch, or no permission to ask.
std::optional<EswitchMode> readEswitchMode(const PciAddress& pf,
                                           std::chrono::milliseconds deadline);
/// Drivers rebuild their netdevs for this: read the PF again afterwards.
void setEswitchMode(const PciAddress& pf, EswitchMode mode, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
