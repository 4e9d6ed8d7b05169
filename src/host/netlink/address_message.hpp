#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

/// RTM_GETADDR for all interfaces of our network namespace; the kernel filters by interface only on
/// sockets with strict checking (NETLINK_GET_STRICT_CHK).
std::string addressesQuery();

/// The IP addresses of one interface in a dump, `192.0.2.1/24`, in the kernel's order, without IPv6
/// link-local ones. Malformed messages are skipped.
std::vector<std::string> parseAddresses(std::string_view dump, int interfaceIndex);

}  // namespace vfpass::host
