#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// What libvirt says about the domain of some leases.
struct DomainUse {
  bool exists = false;
  bool mapped = false;  ///< a mapping names it, so that somebody still wants it
  bool active = false;
  std::set<std::string> configured;  ///< entries in the persistent XML: metadata or device
  std::set<std::string> plugged;     ///< entries whose device the running domain has
};

/// Leases of one domain that it does not use any more: it is gone and no mapping names it (a domain
/// may be undefined only for a moment, to be defined anew), a running domain that alone had them
/// has stopped, or somebody took them out of its XML. A domain that runs with a device keeps its
/// lease whatever its configuration says.
std::vector<Lease> findGarbage(const std::vector<Lease>& leases, const DomainUse& use);

}  // namespace vfpass::plan
