#pragma once

#include <vector>

#include "vfpass/claim.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Everything that attach looks at, gathered beforehand.
struct AttachInput {
  Mapping mapping;
  HostPolicy policy;
  Inventory inventory;
  Uuid domain;
  std::string domainName;
  bool active = false;
  std::vector<Lease> leases;               ///< of all domains
  std::vector<DomainSummary> domains;      ///< all domains of the host
  std::vector<Mapping> otherMappings;      ///< for addresses that are spoken for
  std::vector<GuestPlacement> placements;  ///< free: VFs first, one for each new lease
  bool xmlCurrent = false;       ///< the persistent XML already carries the leases of this domain
  std::uint64_t generation = 0;  ///< for leases that are new or changed
  std::string bootId;
};

/// What attach would do. With objections there are no steps.
struct AttachDecision {
  Plan plan;
  std::vector<Lease> leases;  ///< the domain's leases afterwards
  std::vector<Objection> objections;
};

/// Decides VF, MAC and guest address of every entry of the mapping (kept from earlier leases where
/// they still fit), and the steps that bring host and XML there.
AttachDecision planAttach(const AttachInput& input);

}  // namespace vfpass::plan
