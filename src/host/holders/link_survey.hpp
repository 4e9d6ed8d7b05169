#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "holders/link_dump.hpp"
#include "holders/network_namespaces.hpp"
#include "netlink/netlink_batch.hpp"
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
  std::vector<OwnedLink> links;
  std::set<int> addressed;   ///< ours only: indices of links with addresses
  std::optional<int> ourId;  ///< the ID that this namespace has assigned to ours
};

/// The network devices of all namespaces, ours first.
struct LinkSurvey {
  std::vector<NamespaceLinks> namespaces;
  /// What could not be read, for messages; empty: everything was read.
  std::string blindSpot;
};

LinkSurvey surveyLinks(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                       std::chrono::milliseconds deadline);

/// The queries of surveyLinks for each namespace, in this order: links, then addresses in our
/// namespace, or our ID in any other one.
std::vector<NetlinkQuery> surveyQueries(const std::vector<NetworkNamespace>& namespaces,
                                        int ourDescriptor);

/// Parses the answers to surveyQueries. `interrupted`: the queries must be repeated.
LinkSurvey readSurvey(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                      const std::vector<NetlinkAnswer>& answers, bool& interrupted);

}  // namespace vfpass::host
