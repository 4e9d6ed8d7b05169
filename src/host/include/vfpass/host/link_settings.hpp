#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// A netdev's name is for messages; it is addressed by interface index, because names change.
struct NetdevHandle {
  int index = 0;
  std::string name;
};

/// What host.yaml can ask of a PF's netdev.
struct LinkSettings {
  unsigned mtu = 0;  ///< bytes
  bool up = false;   ///< administratively (IFF_UP), whatever the cable says

  auto operator<=>(const LinkSettings&) const = default;
};

/// Who switches between a PF's VFs: the card alone, or rules that the host loads into it.
enum class EswitchMode { legacy, switchdev };

std::string_view toString(EswitchMode mode);
std::optional<EswitchMode> parseEswitchMode(std::string_view name);

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
