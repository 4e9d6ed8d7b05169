#pragma once

#include <string>
#include <vector>

#include "subject.hpp"

namespace vfpass::cli {

/// Ways in which the kernel is not as this lease says, one line each. Between two runs of the guest
/// VFs hold neutral values, and after a reboot there are none: neither is drift, prepare sees to
/// it.
std::vector<std::string> kernelDrift(const Lease& lease, const Inventory& inventory,
                                     const std::string& bootId, bool domainActive);

/// Attributes of a running lease that the kernel does not show, so that nobody can tell drift.
std::vector<std::string> unobservedAttributes(const Lease& lease, const Inventory& inventory,
                                              const std::string& bootId);

/// Ways in which the domain is not as its leases say, running or not; metadata that are not sealed
/// with `key` are one. No domain (null) is one, too.
std::vector<std::string> domainDrift(const DomainDescription* domain,
                                     const std::vector<Lease>& leases, const SealKey& key);

/// The libvirt network that hands out the lease's device as well, one line; empty: none.
std::string poolDrift(const Lease& lease, const Inventory& inventory,
                      const std::vector<NetworkPool>& pools);

/// A managed save image, from which the domain's next start restores a guest without devices of
/// ours (libvirt saves no guest that has one), one line; empty: none.
std::string managedSaveDrift(Session& session, const DomainDescription& domain);

}  // namespace vfpass::cli
