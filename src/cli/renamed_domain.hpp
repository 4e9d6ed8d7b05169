#pragma once

#include "session.hpp"

namespace vfpass::cli {

/// Leases go by UUID, mappings by name: after `virsh domrename` the domain has leases and no
/// mapping, and its mapping no domain. These throw (bad input) with both names when that is what
/// has happened, and do nothing otherwise.
void throwIfRenamed(Session& session, const DomainDescription& domainWithoutMapping);
void throwIfRenamed(Session& session, const Mapping& mappingWithoutDomain);

}  // namespace vfpass::cli
