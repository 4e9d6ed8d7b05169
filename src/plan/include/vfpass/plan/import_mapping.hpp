#pragma once

#include <map>
#include <vector>

#include "vfpass/domain_facts.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::plan {

/// What importMapping() judges.
struct ImportInput {
  Uuid domain;
  std::vector<HandMadeDevice> configured;  ///< of a transient domain: the same as `running`
  std::vector<HandMadeDevice> running;     ///< empty if the domain does not run
  std::vector<DomainInterface> interfaces;
  Inventory inventory;                             ///< with the functions that the domain names
  Topology topology;                               ///< with the names of models
  std::map<PciAddress, EswitchMode> eswitchModes;  ///< of PFs, where observable
  std::vector<DomainSummary> domains;
  std::vector<NetworkPool> pools;
  std::vector<Lease> leases;
  std::vector<Mapping> otherMappings;  ///< of other domains
  std::vector<BootPolicy> bootPolicies;
};

/// An entry for each device that attach can take over in place, with the values that it has now;
/// every other device with the reason.
ImportedMapping importMapping(const ImportInput& input);

/// The PFs of which host.yaml can take over settings: those with VFs, and those that a file sets up
/// at boot. `settings`: of each PF, where observable.
ImportedHost importHost(const Inventory& inventory,
                        const std::map<PciAddress, PfSettings>& settings,
                        const std::vector<BootPolicy>& bootPolicies);

}  // namespace vfpass::plan
