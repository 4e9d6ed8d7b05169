#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::plan {

/// What `pf: {near: NAME}` is decided by.
struct NearInput {
  const Mapping& mapping;
  const HostPolicy& policy;
  const Inventory& inventory;
  const Topology& topology;
  const std::vector<Lease>& leases;  ///< of all domains
  Uuid domain;                       ///< whose mapping this is
};

/// A mapping that names every PF by address.
struct NearResolution {
  Mapping mapping;                          ///< entries that could not be decided still say `near`
  std::map<std::string, Objection> faults;  ///< why not, by the entry's name
  std::vector<std::string> reasons;         ///< for each entry that was decided, why it has this PF
};

/// Whether any VF of it is to be near a GPU.
bool hasNear(const Mapping& mapping);

/// Gives each entry with `near` the PF with the shortest way over PCIe to that function of the
/// mapping (topology::nearPfs). A PF in another NUMA node (SYS) is not near. An entry that is
/// leased keeps its PF among several that are as near.
NearResolution resolveNear(const NearInput& input);

}  // namespace vfpass::plan
