#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// The plan for a start. `metadata`: the leases in the XML's metadata, which must equal the
/// domain's leases in `known`, the leases of the whole database (checkMetadata()); these are
/// applied. `inventory`: the current state of the PFs and PCI functions that they name.
struct PrepareDecision {
  Plan plan;
  std::vector<Objection> objections;
};
PrepareDecision planPrepare(const Uuid& domain, const std::string& domainName,
                            const std::vector<Lease>& metadata, const std::vector<Lease>& known,
                            const Inventory& inventory, const std::string& bootId);

/// The plan after a stop: resets the devices of this domain's leases in state starting or running,
/// sets neutral values and returns the leases to reserved.
Plan planRelease(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& known,
                 const Inventory& inventory, const std::string& bootId);

/// Names of the terms decided by attach that differ between two leases of one entry: `vlan`,
/// `trust`, `kind`, ...; empty if their termsOf() are equal.
std::vector<std::string> differingTerms(const Lease& one, const Lease& other);

/// Problems with starting a domain with the leases in its XML's metadata: they belong to another
/// domain, or differ from the database's leases of this domain. A lease that only the running
/// domain had may be missing in the metadata. `known`: leases of all domains.
std::vector<Objection> checkMetadata(const Uuid& domain, const std::string& domainName,
                                     const std::vector<Lease>& metadata,
                                     const std::vector<Lease>& known);

// plan_arrival.cpp

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

/// What to do about an arriving domain whose XML does not fit its leases on this host.
std::string arrivalRemedy(Arrival arrival, const std::string& domainName);

}  // namespace vfpass::plan
