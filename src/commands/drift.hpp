#pragma once

#include <string>
#include <vector>

#include "subject.hpp"

namespace vfpass::commands {

/// Differences between this lease and the kernel, one line each. While the guest is stopped its VFs
/// have neutral values, and after a reboot they do not exist: neither is drift, because prepare
/// creates and configures them.
std::vector<std::string> kernelDrift(const Lease& lease, const Inventory& inventory,
                                     const std::string& bootId, bool domainActive);

/// Of a stopped guest: attributes of the VF that somebody has changed since the last start or
/// attach, such as `vlan 5 instead of 100`. Neutral values, which a stop sets, and those that the
/// kernel does not report are left out.
std::vector<std::string> attributesToSet(const Lease& lease, const Inventory& inventory,
                                         const std::string& bootId);

/// Attributes of a running lease that the kernel does not show, so that their drift is unknown.
std::vector<std::string> unobservedAttributes(const Lease& lease, const Inventory& inventory,
                                              const std::string& bootId);

/// Differences between the domain, running or not, and its leases, one line each. Metadata not
/// sealed with `key` is drift, and so is a domain that does not exist (null).
std::vector<std::string> domainDrift(const DomainDescription* domain,
                                     const std::vector<Lease>& leases, const SealKey& key);

/// The libvirt network whose pool also contains the lease's device, one line; empty if none does.
std::string poolDrift(const Lease& lease, const Inventory& inventory,
                      const std::vector<NetworkPool>& pools);

/// A managed save image, one line; empty if there is none. The domain's next start restores from it
/// a guest without our devices, because libvirt does not save a guest that has one.
std::string managedSaveDrift(const DomainDescription& domain);

}  // namespace vfpass::commands
