#pragma once

#include <linux/genetlink.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
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

}  // namespace vfpass::host
