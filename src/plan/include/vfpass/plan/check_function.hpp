#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Addresses of the PCI functions that these leases and entries of `gpus:` name, each once: what an
/// inventory has to hold for them.
std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedGpu>& gpus = {});

/// Under which circumstances a function is to be given away.
struct FunctionTerms {
  std::string name;                 ///< of its entry in the mapping
  std::set<PciAddress> companions;  ///< functions that go to the same guest
  std::set<Allowance> allow;
  bool unsafeInterrupts = false;
  std::set<std::string> takenNames = {};  ///< of the mapping's entries; proposed lines have others
};

/// Why this function cannot be given to any guest, whoever uses it now: it is a bridge, a VF, a PF
/// with VFs, the host's display, or not isolated. Allowances waive.
std::vector<Objection> checkFunctionKind(const PciFunction& function, const FunctionTerms& terms);

/// Why it cannot be taken now: somebody holds it. `holders` may name other devices, too.
std::vector<Objection> checkFunctionUse(const PciFunction& function, const FunctionTerms& terms,
                                        const std::vector<Holder>& holders);

/// Why the leases of functions among these do not fit the host as it is now: function missing or
/// another one in its place, and everything that the other two find. For prepare.
std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases);

}  // namespace vfpass::plan
