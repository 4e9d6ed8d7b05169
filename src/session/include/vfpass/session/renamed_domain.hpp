#pragma once

#include "vfpass/session/command_session.hpp"

namespace vfpass::session {

/// Leases refer to a domain by UUID, mappings by name: after `virsh domrename` the domain has
/// leases but no mapping, and its mapping has no domain. In that case these throw (bad input) with
/// both names; otherwise they do nothing.
void throwIfRenamed(Session& session, const DomainDescription& domainWithoutMapping);
void throwIfRenamed(Session& session, const Mapping& mappingWithoutDomain);

}  // namespace vfpass::session
