#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "netlink/acknowledgement.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Object and purpose of an exchange, for messages: `ens1f0np0: setting the MTU`.
struct ExchangePurpose {
  std::string object;
  std::string verb;
  /// The device that it changes. The child is marked with it while the call is pending in the
  /// kernel (call_mark.hpp).
  std::optional<PciAddress> device = std::nullopt;
  /// Index of the netdev whose driver handles the request without the kernel's check that the
  /// driver has not detached it; 0: none. While it is detached, the request is not sent.
  int netdev = 0;
};

/// Sends one request to the kernel and returns the first datagram of the reply. Runs in a guarded
/// child, because the kernel handles the request within sendmsg(2), under the RTNL or the devlink
/// lock, and blocks while another task holds the lock. Throws TimeoutError, Error.
std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline);

/// Sends a change and returns the kernel's acknowledgement, which may be a refusal. Throws
/// TimeoutError, and Error for a reply that is no acknowledgement.
Acknowledgement sendChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                           std::chrono::milliseconds deadline);

/// Sends a change that the kernel must accept. Throws Error with the kernel's reason and the remedy
/// that `remedyFor` gives for its errno.
void requireChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                   std::chrono::milliseconds deadline, std::string (*remedyFor)(int error));

/// Throws the TimeoutError for an exchange without a reply within this time.
[[noreturn]] void throwNoReply(const ExchangePurpose& purpose, std::chrono::milliseconds deadline);

/// Throws the Error for a reply that is not the requested data: the kernel's refusal, or a message
/// that is invalid.
[[noreturn]] void throwNoData(const ExchangePurpose& purpose, std::string_view reply);

/// As exchangeNetlink() for a request with NLM_F_DUMP: returns all datagrams of the reply,
/// concatenated, up to the last one (NLMSG_DONE or NLMSG_ERROR).
std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline);

}  // namespace vfpass::host
