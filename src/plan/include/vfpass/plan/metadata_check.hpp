#pragma once

#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Names of the terms in which two leases of one entry differ, of all that attach decides: `vlan`,
/// `trust`, `kind`, ...; empty: termsOf() them are equal.
std::vector<std::string> differingTerms(const Lease& one, const Lease& other);

/// Why a domain must not start with the leases in its XML's metadata: they are another domain's, or
/// are not the database's leases of this domain. A lease that only the running domain had may be
/// missing in the metadata. `known`: leases of all domains.
std::vector<Objection> checkMetadata(const Uuid& domain, const std::string& domainName,
                                     const std::vector<Lease>& metadata,
                                     const std::vector<Lease>& known);

}  // namespace vfpass::plan
