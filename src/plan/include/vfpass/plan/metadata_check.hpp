#pragma once

#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

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
