#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Object and purpose of an exchange, for messages: `ens1f0np0: setting the MTU`.
struct ExchangePurpose {
  std::string object;
  std::string verb;
  /// The device that it changes. The child's task name contains it while the call is pending in the
  /// kernel (task_name.hpp).
  std::optional<PciAddress> device = std::nullopt;
};

/// Sends one request to the kernel and returns the first datagram of the reply. Runs in a guarded
/// child, because the kernel handles the request within sendmsg(2), under the RTNL or the devlink
/// lock, and blocks while another task holds the lock. Throws TimeoutError, Error.
std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline);

/// The same for a request with NLM_F_DUMP: returns all datagrams of the reply, concatenated, up to
/// the last one (NLMSG_DONE or NLMSG_ERROR).
std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline);

}  // namespace vfpass::host
