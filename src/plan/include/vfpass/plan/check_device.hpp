#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::plan {

/// Addresses of the PCI functions named by these leases and entries of `functions:`, without
/// duplicates: the functions that an inventory must contain.
std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedFunction>& functions = {});

/// Addresses of the devices of these leases: companions of each other if they have one domain.
std::set<PciAddress> devicesOf(const std::vector<Lease>& leases);

/// The conditions under which a device is passed to a guest.
struct DeviceTerms {
  std::string name;                 ///< of its entry in the mapping
  std::set<PciAddress> companions;  ///< devices that go to the same guest
  std::set<Allowance> allow;
  bool unsafeInterrupts = false;
  /// Names of the mapping's entries: proposed lines use others.
  std::set<std::string> takenNames = {};
  /// False: the host has no IOMMU group at all, which is one problem for all devices
  /// (objectToMissingIommu()) instead of one for each.
  bool iommuPresent = true;
};

/// The problem of a host whose IOMMU is off. Not a refusal: it disrupts nothing.
Objection objectToMissingIommu(const Processors& processors);

/// The problem of a device in quarantine, by its name in messages; nothing if it is not listed, by
/// its address or as the card that was at another one.
std::vector<Objection> checkQuarantine(const std::string& name, const PciAddress& device,
                                       const std::vector<QuarantinedDevice>& quarantined);

/// The same for the devices of leases, by the names of their entries. A PF in quarantine keeps its
/// VFs from guests, too.
std::vector<Objection> checkQuarantine(const std::vector<Lease>& leases,
                                       const std::vector<QuarantinedDevice>& quarantined);

/// Problems that keep this function from being passed to any guest, regardless of its users: it is
/// a bridge, a VF, a PF with VFs, the host's display, or not isolated. Allowances waive problems.
std::vector<Objection> checkFunctionKind(const Device& function, const DeviceTerms& terms);

/// Problem when this function can be reset only with its bus, and other functions there do not go
/// to the same guest: its next owner could read data left by this one. For attach; a device that is
/// already attached stays.
std::vector<Objection> checkReset(const Device& function, const DeviceTerms& terms);

/// Problems with its current holders. `holders` may also name other devices.
std::vector<Objection> checkFunctionUse(const Device& function, const DeviceTerms& terms,
                                        const std::vector<Holder>& holders);

/// Problems with the leased functions among `leases` on the host as it is now: a function is
/// missing or replaced by another one, and everything that checkFunctionKind() and
/// checkFunctionUse() find. For prepare. `companions`: the devices that go to the same guest.
std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases,
                                            const std::set<PciAddress>& companions);

/// Problems that keep this VF from being passed to a guest: it is in use, or not isolated.
/// Allowances waive problems. `holders` may also name other devices.
std::vector<Objection> checkVf(const VirtualFunction& vf, const DeviceTerms& terms,
                               const std::vector<Holder>& holders);

/// Problems with the leases on the PF as it is now: VF missing or at another address than the lease
/// records, card moved or replaced, and everything that checkVf() finds. For prepare, and after
/// creating VFs. `companions`: the devices that go to the same guest, besides those of `leases`.
std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                      const std::vector<Holder>& holders,
                                      const std::set<PciAddress>& companions = {});

/// Problems with the isolation of a VF or function, by its name in messages: it has no IOMMU group,
/// shares it with a device that does not go to the same guest, or interrupts can be injected.
/// Bridges of the host in the group are harmless. Allowances waive sharing and interrupts.
std::vector<Objection> checkIsolation(const std::string& name, const Device& device,
                                      const DeviceTerms& terms);

/// The beginning of a remedy: to pass these functions to the same guest as an entry of
/// `functions:`, with lines to paste into the mapping. Ends with "or ", so that an alternative can
/// follow. Empty if the terms name no entry, or if one of the functions is a bridge, which cannot
/// be passed to a guest. The proposed names tell the kind of the function (`gpu0-audio`) and differ
/// from all entries of the mapping.
std::string companionRemedy(const std::vector<GroupPeer>& functions, const DeviceTerms& terms);

/// The addresses in one line.
std::string listAddresses(const std::vector<GroupPeer>& functions);

}  // namespace vfpass::plan
