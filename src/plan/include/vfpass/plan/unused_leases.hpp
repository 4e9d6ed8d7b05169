#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// What libvirt reports about the domain of some leases.
struct DomainUse {
  bool exists = false;
  bool mapped = false;  ///< a mapping names it, so that it is still wanted
  bool active = false;
  std::set<std::string> configured;  ///< entries in the persistent XML: metadata or device
  std::set<std::string> plugged;     ///< entries whose device the running domain has
  bool configuredUnknown = false;    ///< the persistent XML cannot be read
  bool pluggedUnknown = false;       ///< the live XML cannot be read
};

/// Leases of one domain that it no longer uses: it does not exist and no mapping names it (a domain
/// may be undefined only briefly, to be defined again), only the running domain had them and it has
/// stopped, or they were removed from its XML. A running domain that has a device keeps its lease
/// regardless of its configuration. What cannot be read counts as using every lease.
std::vector<Lease> findGarbage(const std::vector<Lease>& leases, const DomainUse& use);

/// How the devices of ended leases differ from the state recorded before their first lease,
/// according to `inventory`: one line for each device. A value that the driver does not report
/// (GUIDs on most kernels) is named as not readable. Empty: everything was restored.
std::vector<std::string> findUnrestored(const std::vector<Lease>& ended,
                                        const Inventory& inventory);

}  // namespace vfpass::plan
