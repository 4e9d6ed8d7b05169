#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_facts.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// The elements for host PCI functions that vfpass did not create, in document order: what
/// `adopt: true` can take over. Throws Error (ExitCode::badInput) if the text is not a domain.
std::vector<HostElement> hostElements(std::string_view xml);

/// The same of a running domain, and those with an alias of vfpass that none of the domain's
/// `leases` explains: `detach --keep` renames them in the persistent configuration only, because
/// libvirt cannot rename devices of a running domain.
std::vector<HostElement> runningHostElements(std::string_view liveXml,
                                             const std::vector<Lease>& leases);

/// The entries of devicesOfOurs(), and of `leases` the adopted ones whose device the XML has.
std::set<std::string> entriesWithDevice(std::string_view xml, const std::vector<Lease>& leases);

/// The alias of the lease's device in the XML, for libvirt; empty if it has none.
std::string aliasOfDevice(std::string_view xml, const Lease& lease);

/// The domain XML with the devices of these leases as elements of the domain's own: our aliases
/// become `ua-kept-...`, libvirt binds what vfpass has bound (`managed='yes'`), and our metadata is
/// removed. All other bytes stay, with controllers and domain settings.
std::string withDevicesKept(std::string_view xml, const std::vector<Lease>& leases);

}  // namespace vfpass::domain
