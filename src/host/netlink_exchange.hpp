#pragma once

#include <chrono>
#include <string>

namespace vfpass::host {

/// What an exchange is about, for messages: `ens1f0np0: setting the MTU`.
struct ExchangePurpose {
  std::string object;
  std::string verb;
};

/// Sends one request to the kernel and returns the first datagram of its answer. In a guarded
/// child: sendmsg(2) does the work itself, under the RTNL or the devlink lock, and blocks while
/// anybody holds that. Throws TimeoutError, Error.
std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
