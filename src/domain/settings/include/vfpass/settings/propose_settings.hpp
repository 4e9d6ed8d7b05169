#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::settings {

/// One entry of a mapping.
struct GuestDevice {
  std::string name;
  PciAddress function;  ///< on the host; of a VF its PF, because the VF may not exist yet
  bool vf = false;
  std::optional<unsigned> clique = std::nullopt;
  std::optional<std::string> driver = std::nullopt;  ///< the mapping's; nullopt: the best match
};

struct Input {
  const Topology& topology;
  const HostCapacity& capacity;
  DomainFacts domain;
  HypervisorVersions versions;
  std::vector<GuestDevice> devices;
  /// Settings that vfpass has already applied; the host resources that they use belong to this
  /// domain.
  std::set<std::string> made;
  VfioBackend backend = VfioBackend::container;  ///< of the next start
};

/// A request of the mapping that cannot be met; bad input.
struct Fault {
  std::string what;
  std::string remedy;
};

struct Proposal {
  /// Settings that the domain lacks. A setting that the administrator has chosen differently gets
  /// no edit.
  std::vector<DomainSetting> settings;
  std::vector<Fault> faults;
  /// The guest's cells after the proposed settings are applied, with the host nodes of their
  /// memory.
  std::vector<GuestCell> cells;
};

/// The domain settings that follow from the devices, and the cliques that the mapping requests.
/// Pure: the same input gives the same proposal.
Proposal propose(const Input& input);

}  // namespace vfpass::settings
