#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// What an exchange is about, for messages: `ens1f0np0: setting the MTU`.
struct ExchangePurpose {
  std::string object;
  std::string verb;
  /// The device that it changes: as long as the kernel works on it every process can see so
  /// (task_name.hpp).
  std::optional<PciAddress> device = std::nullopt;
};

/// Sends one request to the kernel and returns the first datagram of its answer. In a guarded
/// child: sendmsg(2) does the work itself, under the RTNL or the devlink lock, and blocks while
/// anybody holds that. Throws TimeoutError, Error.
std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline);

/// The same for a request with NLM_F_DUMP: all datagrams of the answer, one after the other, up to
/// the one that ends it (NLMSG_DONE or NLMSG_ERROR).
std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline);

}  // namespace vfpass::host
