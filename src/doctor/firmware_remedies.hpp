#pragma once

#include <string>

#include "check.hpp"

namespace vfpass::doctor {

// Remedies that concern a NIC's firmware: for its vendor, its port, and nothing that is set
// already.

/// Whether the function is a ConnectX port that can have no VFs, most often because its firmware
/// has SR-IOV off and hides the capability.
bool lacksSriov(const View& view, std::size_t number);

/// The setting that limits the VFs of a PF: `NUM_OF_VFS`, or `PF_NUM_OF_VF` if PF_NUM_OF_VF_VALID
/// makes the card ignore it.
std::string vfLimitSetting(const FirmwareSettings& settings);

/// How the NIC gets at least `count` possible VFs.
std::string vfLimitRemedy(const View& view, const Device& nic, unsigned count);

/// How a NIC with mlx5's firmware gets the ATS capability, or loses it if it is not `wanted`.
std::string atsRemedy(const View& view, const Device& pf, bool wanted);

/// Whether mappings require InfiniBand and Ethernet of the same port.
bool bothLinkTypesRequired(const View& view, const PciAddress& pf);

/// How the PF's port gets this link layer, or the mapping a PF that has it.
std::string linkTypeRemedy(const View& view, const Device& pf, LinkLayer wanted);

}  // namespace vfpass::doctor
