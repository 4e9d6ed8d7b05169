#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// What a start needs. `metadata`: the leases of the XML's metadata, which must be the domain's
/// leases in `known`, all of the database's (checkMetadata()); these are applied. `inventory`: the
/// PFs and PCI functions they name, as they are now.
struct PrepareDecision {
  Plan plan;
  std::vector<Objection> objections;
};
PrepareDecision planPrepare(const Uuid& domain, const std::string& domainName,
                            const std::vector<Lease>& metadata, const std::vector<Lease>& known,
                            const Inventory& inventory, const std::string& bootId);

/// Scrub after a stop: leases of this domain in starting or running, no others: reset, neutral
/// values, back to reserved.
Plan planRelease(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& known,
                 const Inventory& inventory, const std::string& bootId);

}  // namespace vfpass::plan
