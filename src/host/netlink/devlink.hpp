#pragma once

#include <linux/genetlink.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Bytes between the netlink header and the attributes.
inline constexpr int genericHeadBytes = static_cast<int>(NLMSG_ALIGN(sizeof(genlmsghdr)));

/// A request to devlink about this device. `family`: devlinkFamily().
NetlinkMessage startDevlink(std::uint16_t family, int flags, std::uint8_t command,
                            const PciAddress& pf);

/// The first attribute of this type of a generic netlink message; nullptr when it is missing.
nlattr* attributeOf(nlmsghdr* header, int type);

/// The ID of devlink's family in this kernel; nullopt: it has no devlink. Throws as
/// exchangeNetlink().
std::optional<std::uint16_t> devlinkFamily(const ExchangePurpose& purpose,
                                           std::chrono::milliseconds deadline);

/// What devlink's port of a VF says about the VF itself.
struct PortFunction {
  std::uint32_t port = 0;          ///< its index among the ports of the PF
  std::optional<bool> migratable;  ///< nullopt: kernel (before Linux 6.2) or firmware has no such

  auto operator<=>(const PortFunction&) const = default;
};

/// By index of the VF.
using PortFunctions = std::map<unsigned, PortFunction>;

/// Finds the ports of a PF's VFs in a dump of ports. mlx5 has such ports only in switchdev mode.
/// `family`: the ID of devlink.
PortFunctions parsePortFunctions(std::string_view dump, std::uint16_t family, const PciAddress& pf);

/// The request that sets the capability of the VF behind a port.
std::string migratableChange(std::uint16_t family, const PciAddress& pf, std::uint32_t port,
                             bool migratable);

/// Lets the firmware save and load the state of a VF, which has no driver meanwhile: it reads its
/// capabilities when it probes. The firmware turns off what it cannot save, so that a VF whose
/// guest does not migrate does without (Documentation/networking/devlink/devlink-port.rst).
/// Does nothing if the VF has this state already; a VF without a port is not migratable. Throws
/// Error with the kernel's reason, TimeoutError.
void setMigratable(const PciAddress& pf, unsigned index, bool migratable,
                   std::chrono::milliseconds deadline);

}  // namespace vfpass::host
