#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/network_namespaces.hpp"

namespace vfpass::host {

/// A network namespace in which requests are sent.
struct NetlinkPlace {
  std::uint64_t inode = 0;
  /// Files for entering the namespace, tried in order; a file that is not this namespace is
  /// skipped. Without files and mounts: the namespace of this process.
  std::vector<std::string> files;
  std::vector<NamespaceMount> mounts{};  ///< tried after the files
};

struct NetlinkQuery {
  std::size_t place = 0;  ///< index of its NetlinkPlace
  int protocol = 0;       ///< NETLINK_ROUTE, NETLINK_RDMA
  std::string request;
  bool dump = true;  ///< false: the reply is one datagram
  /// Index of the netdev whose driver answers; 0: none. While it is detached, the request is not
  /// sent, and the error is ENODEV.
  int netdev = 0;
};

struct NetlinkAnswer {
  /// errno of the exchange. ETIMEDOUT: the deadline passed. ENOENT: the namespace no longer exists.
  /// EAGAIN: it could only be entered by asking a user's file system. Errors from the kernel are in
  /// `bytes`.
  int error = ETIMEDOUT;
  std::string bytes;
};

/// Called with each datagram of the replies; `query` is an index.
using DatagramVisitor = std::function<void(std::size_t query, std::string_view datagram)>;

/// Sends these requests one after the other in one guarded child (see netlink_exchange.hpp), and
/// visits the datagrams of the replies while they arrive: any user can make the reply to a dump as
/// long as they like in a namespace of their own. Returns NetlinkAnswer::error for each query.
/// Queries must be in the order of their places, beginning with the place that need not be entered.
/// The child keeps `kept` open under the same number (-1: none).
std::vector<int> streamNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                    const std::vector<NetlinkQuery>& queries, int kept,
                                    std::chrono::milliseconds deadline,
                                    const DatagramVisitor& visit);

/// The same for replies that only root of the host can make longer: returns them whole.
std::vector<NetlinkAnswer> runNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                           const std::vector<NetlinkQuery>& queries, int kept,
                                           std::chrono::milliseconds deadline);

}  // namespace vfpass::host
