#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_facts.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The first pool that contains the function; nullptr if none does. `pfNetdev`: the netdev of its
/// PF, empty if the function is not a VF.
const NetworkPool* findPool(const std::vector<NetworkPool>& pools, const PciAddress& function,
                            std::string_view pfNetdev);

/// The domains and networks whose definitions name VFs of this PF, by VF. A domain that has a lease
/// of a VF is not listed for it.
std::vector<DeviceUser> definedUsers(const PhysicalFunction& pf,
                                     const std::vector<DomainSummary>& domains,
                                     const std::vector<NetworkPool>& pools,
                                     const std::vector<Lease>& leases);

/// Adds an objection for each lease of another domain that includes the wanted device: a whole PF
/// includes its VFs. `wanted.domain` is the VM; `alternative` begins the remedy, such as `choose
/// another index`.
void objectToLeases(const std::vector<Lease>& leases, const Lease& wanted,
                    const std::string& alternative, std::vector<Objection>& objections);

/// Adds an objection if the function belongs to a pool of libvirt networks, which libvirt allocates
/// from without checking whether a device is in use.
void objectToPool(const AttachInput& input, const PciAddress& function, std::string_view pfNetdev,
                  const std::string& remedy, std::vector<Objection>& objections);

/// Adds an objection for each lease of another domain whose GPU has the same NVLink module ID.
void objectToModules(const std::vector<Lease>& leases, const Lease& wanted,
                     std::vector<Objection>& objections);

/// Adds an objection for each domain whose XML names the device, the VM's own included if vfpass
/// did not add that hostdev and the entry neither has nor is about to take it over (`adopt`): the
/// element of an adopted device stays in the XML when its lease ends. `kind` is the device's, for
/// the remedy: `VF`, `function`.
void objectToClaims(const AttachInput& input, const PciAddress& address, const std::string& kind,
                    bool adopt, std::vector<Objection>& objections);

}  // namespace vfpass::plan
