#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vfpass::probe {

/// ICMP echo requests through one interface.
struct PingRequest {
  std::string interface;
  std::string address;  ///< IPv4 or IPv6, without a scope
  unsigned count = 5;
  std::chrono::milliseconds timeout{1000};  ///< for each reply
};

/// Sends the requests one after another, bound to the interface (SO_BINDTODEVICE), so that no other
/// route can carry them; needs CAP_NET_RAW. Returns a document whose `passed` says whether at least
/// one reply arrived: the first packets may be lost while neighbours are resolved. Throws Error for
/// an address or an interface that cannot be used.
nlohmann::json ping(const PingRequest& request);

}  // namespace vfpass::probe
