#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Addresses of the PCI functions named by these leases and entries of `gpus:`, without duplicates:
/// the functions that an inventory must contain.
std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedFunction>& gpus = {});

/// The conditions under which a function is passed to a guest.
struct FunctionTerms {
  std::string name;                 ///< of its entry in the mapping
  std::set<PciAddress> companions;  ///< functions that go to the same guest
  std::set<Allowance> allow;
  bool unsafeInterrupts = false;
  std::set<std::string> takenNames = {};  ///< of the mapping's entries; proposed lines use others
};

/// Problems that keep this function from being passed to any guest, regardless of its users: it is
/// a bridge, a VF, a PF with VFs, the host's display, or not isolated. Allowances waive problems.
std::vector<Objection> checkFunctionKind(const PciFunction& function, const FunctionTerms& terms);

/// Problem when this function can be reset only with its bus, and other functions there do not go
/// to the same guest: its next owner could read data left by this one. For attach; a device that is
/// already attached stays.
std::vector<Objection> checkReset(const PciFunction& function, const FunctionTerms& terms);

/// Problems with its current holders. `holders` may also name other devices.
std::vector<Objection> checkFunctionUse(const PciFunction& function, const FunctionTerms& terms,
                                        const std::vector<Holder>& holders);

/// Problems with the leased functions among `leases` on the host as it is now: a function is
/// missing or replaced by another one, and everything that the other two checks find. For prepare.
std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases);

}  // namespace vfpass::plan
