#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "holders/link_dump.hpp"
#include "holders/network_namespaces.hpp"
#include "netlink_batch.hpp"
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
  std::set<int> addressed;   ///< ours only: those with addresses
  std::optional<int> ourId;  ///< by which number this namespace knows ours
};

/// Those of all namespaces, ours first.
struct LinkSurvey {
  std::vector<NamespaceLinks> namespaces;
  /// What could not be seen, for messages; empty: everything was.
  std::string blindSpot;
};

LinkSurvey surveyLinks(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                       std::chrono::milliseconds deadline);

/// What surveyLinks asks in each namespace, in this order; only ours is asked for addresses, and
/// only the others for our number.
std::vector<NetlinkQuery> surveyQueries(const std::vector<NetworkNamespace>& namespaces,
                                        int ourDescriptor);

/// Reads the answers to surveyQueries. `interrupted`: they have to be asked for again.
LinkSurvey readSurvey(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                      const std::vector<NetlinkAnswer>& answers, bool& interrupted);

}  // namespace vfpass::host
