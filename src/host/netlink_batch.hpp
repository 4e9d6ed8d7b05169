#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace vfpass::host {

/// A network namespace in which requests are to be made.
struct NetlinkPlace {
  std::uint64_t inode = 0;
  /// Files by which to enter it, in the order in which they are tried; one that turns out to be
  /// something else is passed over. Empty: the namespace that this process is in.
  std::vector<std::string> files;
};

struct NetlinkQuery {
  std::size_t place = 0;  ///< index of its NetlinkPlace
  int protocol = 0;       ///< NETLINK_ROUTE, NETLINK_RDMA
  std::string request;
  bool dump = true;  ///< false: one datagram answers it
};

struct NetlinkAnswer {
  /// errno of the exchange. ETIMEDOUT: the deadline passed before. ENOENT: the namespace is gone.
  /// EMSGSIZE: there was too much in all. What the kernel says itself is in `bytes`.
  int error = ETIMEDOUT;
  std::string bytes;
};

/// Makes these requests one after the other in one guarded child (netlink_exchange.hpp says why)
/// and returns an answer for each. Queries come in the order of their places, and the place that
/// needs no entering first. The child keeps `kept` open under the same number (-1: nothing).
std::vector<NetlinkAnswer> runNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                           const std::vector<NetlinkQuery>& queries, int kept,
                                           std::chrono::milliseconds deadline);

}  // namespace vfpass::host
