#pragma once

#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// How a domain comes to this host with XML that was written earlier or elsewhere: libvirt starts
/// it from a saved image, or as the target of a migration.
enum class Arrival { restore, migration };

/// The leases that the arriving domain's XML gets in place of those in its metadata.
struct ArrivalDecision {
  std::vector<Lease> leases;  ///< empty: the XML stays as it is
  std::vector<Objection> objections;
};

/// Compares the metadata of an arriving domain with its leases on this host (`known`: those of all
/// domains). A lease that has changed since, or the one of another host, is replaced by this host's
/// if the VF is teamed, so that the guest has none while it moves, or migrates by VFIO on both
/// hosts, and if the guest cannot tell the two VFs apart. `prepare` follows and checks the result
/// like that of any start. Whether the two cards can exchange the state of a VF is for their
/// firmware to say (LOAD_VHCA_STATE).
///
/// A restored domain without any lease is left to `prepare`, which rebuilds lost leases.
ArrivalDecision planArrival(Arrival arrival, const Uuid& domain, const std::string& domainName,
                            const std::vector<Lease>& metadata, const std::vector<Lease>& known);

/// What to do about an arriving domain whose XML does not fit to its leases on this host.
std::string arrivalRemedy(Arrival arrival, const std::string& domainName);

}  // namespace vfpass::plan
