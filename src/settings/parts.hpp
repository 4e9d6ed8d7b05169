#pragma once

#include <vector>

#include "context.hpp"
#include "placement.hpp"

namespace vfpass::settings {

// One function for each group of settings; each adds the settings that the domain lacks.

/// `hard-limit`
void proposeHardLimit(const Input& input, std::vector<DomainSetting>& settings);

/// `guest-address-bits`, `firmware-window`, `pci-hole`
void proposeAddressSpace(const Input& input, std::vector<DomainSetting>& settings);

/// `firmware`
void proposeFirmware(const Input& input, std::vector<DomainSetting>& settings);

/// `large-bars`
void proposeLargeBars(const Input& input, std::vector<DomainSetting>& settings);

/// `guest-cells`, `memory-placement`, `vcpu-placement`
void proposePlacement(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings);

/// `hugepages`
void proposeHugePages(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings);

/// `gpu-clique`
void proposeCliques(const Input& input, Proposal& proposal);

}  // namespace vfpass::settings
