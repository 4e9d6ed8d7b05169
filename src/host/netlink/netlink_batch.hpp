#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace vfpass::host {

/// A network namespace in which requests are sent.
struct NetlinkPlace {
  std::uint64_t inode = 0;
  /// Files for entering the namespace, tried in order; a file that is not this namespace is
  /// skipped. Empty: the namespace of this process.
  std::vector<std::string> files;
};

struct NetlinkQuery {
  std::size_t place = 0;  ///< index of its NetlinkPlace
  int protocol = 0;       ///< NETLINK_ROUTE, NETLINK_RDMA
  std::string request;
  bool dump = true;  ///< false: the reply is one datagram
};

struct NetlinkAnswer {
  /// errno of the exchange. ETIMEDOUT: the deadline passed. ENOENT: the namespace no longer exists.
  /// EMSGSIZE: the replies exceed the limit in total. Errors from the kernel are in `bytes`.
  int error = ETIMEDOUT;
  std::string bytes;
};

/// Sends these requests one after the other in one guarded child (see netlink_exchange.hpp) and
/// returns an answer for each. Queries must be in the order of their places, beginning with the
/// place that need not be entered. The child keeps `kept` open under the same number (-1: none).
std::vector<NetlinkAnswer> runNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                           const std::vector<NetlinkQuery>& queries, int kept,
                                           std::chrono::milliseconds deadline);

}  // namespace vfpass::host
