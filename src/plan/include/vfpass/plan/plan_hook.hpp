#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// The plan for a start. `metadata`: the leases in the XML's metadata, which must equal the
/// domain's leases in `known`, the leases of the whole database (checkMetadata()); these are
/// applied. `inventory`: the current state of the PFs and PCI functions that they name.
struct PrepareDecision {
  Plan plan;
  std::vector<Objection> objections;
};
PrepareDecision planPrepare(const Uuid& domain, const std::string& domainName,
                            const std::vector<Lease>& metadata, const std::vector<Lease>& known,
                            const Inventory& inventory, const std::string& bootId);

/// The plan after a stop: resets the devices of this domain's leases in state starting or running,
/// sets neutral values and returns the leases to reserved.
Plan planRelease(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& known,
                 const Inventory& inventory, const std::string& bootId);

}  // namespace vfpass::plan
