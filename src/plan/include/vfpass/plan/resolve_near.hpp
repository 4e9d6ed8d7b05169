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

/// The input for resolving `pf: {near: NAME}`.
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
  Mapping mapping;  ///< entries that could not be resolved still have `near`
  std::map<std::string, Objection> faults;  ///< why not, by the entry's name
  std::vector<std::string> reasons;         ///< for each resolved entry, the PF and its distance
};

/// True when any VF of the mapping should be near a GPU.
bool hasNear(const Mapping& mapping);

/// Gives each entry with `near` the PF with the shortest PCIe path to that function of the mapping
/// (topology::nearPfs) among those with the link type that its attributes need. Entries that need
/// the same type get PFs of one kind (topology::commonKind). A PF in another NUMA node (SYS) is not
/// near. A leased entry keeps its PF if others are only equally near, also under a new name.
NearResolution resolveNear(const NearInput& input);

}  // namespace vfpass::plan
