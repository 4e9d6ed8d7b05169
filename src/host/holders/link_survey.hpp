#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "netlink/link_dump.hpp"
#include "netlink/netlink_exchange.hpp"
#include "netlink/network_namespaces.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// A network device and the PCI function that it belongs to.
struct OwnedLink {
  Link link;
  std::optional<PciAddress> function;
};

/// The network devices of one namespace.
struct NamespaceLinks {
  std::string description;  ///< NetworkNamespace::description
  bool ours = false;
  std::vector<OwnedLink> links;  ///< in other namespaces only LinkScope::ofDevices
  std::set<int> addressed;       ///< ours only: indices of links with addresses
  std::optional<int> ourId;      ///< the ID that this namespace has assigned to ours
};

/// The network devices of all namespaces, ours first.
struct LinkSurvey {
  std::vector<NamespaceLinks> namespaces;
  /// What could not be read in the host's own namespaces, for messages; empty: everything was read.
  std::string blindSpot;
  /// The same in namespaces that users own. They can make them unreadable, or too large to read in
  /// time; only root of the host can move a device there. So this matters only for a function whose
  /// netdev is nowhere else.
  std::string unread;
};

/// Reads the namespaces of the host first, and those of users in half of the time.
LinkSurvey surveyLinks(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                       std::chrono::milliseconds deadline);

/// The same of all namespaces that the processes and mounts lead to.
LinkSurvey surveyLinks(const Root& root, const std::vector<Process>& processes,
                       const MountTable& mounts, std::chrono::milliseconds deadline);

/// What the kernel has replied about one namespace so far.
struct NamespaceReply {
  LinkDump links;
  AddressDump addresses;     ///< ours only
  std::optional<int> ourId;  ///< other ones only
  int linksError = 0;        ///< errno of the exchange
  int otherError = 0;
};

/// Adds a datagram of the reply to the first (links) or second query.
void addReply(std::string_view datagram, bool isLinks, bool ours, NamespaceReply& reply);

/// errno; 0: everything was read. ENOENT: the namespace is gone, and its devices are gone or back
/// in the initial one.
int errorOf(const NamespaceReply& reply, bool ours);

/// Whether entries may be missing, because they changed in the meantime.
bool wasInterrupted(const NamespaceReply& reply);

/// Adds the links that only an earlier reply has. Any user can change links of their own namespace
/// all the time; a device that stays there is missing in some of the replies at most.
void addMissing(const LinkDump& earlier, LinkDump& later);

}  // namespace vfpass::host
