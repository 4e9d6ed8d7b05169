#pragma once

#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/netlink_message.hpp"
#include "netlink/network_namespaces.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Object and purpose of an exchange, for messages: `ens1f0np0: setting the MTU`.
struct ExchangePurpose {
  std::string object;
  std::string verb;
  /// The device that it changes. The child is marked with it while the call is pending in the
  /// kernel (CallMark).
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
/// TimeoutError, and Error for a reply that is not an acknowledgement.
Acknowledgement sendChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                           std::chrono::milliseconds deadline);

/// Sends a change that the kernel must accept. Throws Error with the kernel's reason and the remedy
/// that `remedyFor` gives for its errno.
void requireChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                   std::chrono::milliseconds deadline, std::string (*remedyFor)(int error));

/// Throws the TimeoutError for a read without a reply within this time.
[[noreturn]] void throwNoReply(const ExchangePurpose& purpose, std::chrono::milliseconds deadline);

/// Throws the Error for an exchange that failed for this reason.
[[noreturn]] void throwFailed(const ExchangePurpose& purpose, const std::string& reason,
                              const std::string& remedy = {});

/// Throws the Error for a reply that is not the requested data: the kernel's refusal, or a message
/// that is invalid.
[[noreturn]] void throwNoData(const ExchangePurpose& purpose, std::string_view reply);

/// As exchangeNetlink() for a request with NLM_F_DUMP: returns all datagrams of the reply,
/// concatenated, up to the last one (NLMSG_DONE or NLMSG_ERROR).
std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline);

/// Whether this process has CAP_NET_ADMIN in the initial user namespace, which rtnetlink requires
/// for configuring the host's links.
bool mayConfigureLinks();

/// For guarded children: these functions neither allocate memory nor throw.

/// A netlink socket, or -1 with errno.
int openNetlink(int protocol);

/// Sends a request to the kernel; false with errno.
bool sendNetlink(int socket, std::string_view request);

/// The buffer for a datagram.
struct NetlinkRoom {
  char* start;
  std::size_t length;
};

/// The next datagram's length, or -1 with errno. Datagrams not from the kernel are skipped.
ssize_t receiveNetlink(int socket, const NetlinkRoom& room);

/// Whether the driver has detached this netdev, as mlx5 does while it resets the card, and for good
/// when a change of the eswitch mode has failed on its way back, too. Asks with an ethtool command
/// that the kernel refuses for such a netdev (ENODEV, __dev_ethtool) and answers without the driver
/// otherwise. It does not check this before it passes on requests for VFs (do_setvfinfo,
/// rtnl_fill_vf) and data centre bridging (dcb_doit). A netdev that does not exist is not detached.
bool isDetached(int netdevIndex);

/// Whether this datagram ends a dump. It may contain other messages before the final one. A
/// malformed message also ends the dump.
bool endsDump(const char* bytes, std::size_t length);

// netlink_batch.cpp: several requests, in any network namespaces.

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

/// Sends these requests one after the other in one guarded child, and
/// visits the datagrams of the replies while they arrive: any user can make the reply to a dump as
/// long as they like in a namespace of their own. Returns NetlinkAnswer::error for each query.
/// Queries must be in the order of their places, beginning with the place that need not be entered.
/// At the deadline the child is killed.
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
