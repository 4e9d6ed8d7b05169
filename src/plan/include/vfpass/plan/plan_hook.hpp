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

}  // namespace vfpass::plan
