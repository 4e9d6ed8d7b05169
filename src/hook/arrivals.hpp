#pragma once

#include <string>
#include <vector>

#include "operations.hpp"

namespace vfpass::hook {

// libvirt calls these before anything is done for the domain, as filters of its XML: a failure ends
// the restore or the migration, and an empty answer leaves the XML as it is
// (qemuDomainObjRestore, qemuMigrationDstPrepareFresh). Nothing is written and no device is
// touched; `prepare` follows with the XML that they return.

/// The XML to use and the leases that it has now; none if nothing has to be replaced.
struct ArrivalAnswer {
  std::string xml;
  std::vector<Lease> leases;
};

/// Called before a domain is started from a saved image. Gives the XML of the image the domain's
/// leases of today. Throws if the image does not fit to them.
ArrivalAnswer restoreSaved(const CalledDomain& parsed, const Places& places);

/// Called on the target of a migration. Replaces the leases of the source by those that an attach
/// has recorded on this host for the same domain. Throws if this host has no such lease, or if the
/// guest would notice the difference.
ArrivalAnswer receive(const CalledDomain& parsed, const Places& places);

}  // namespace vfpass::hook
