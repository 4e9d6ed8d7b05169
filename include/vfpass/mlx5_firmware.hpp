#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// Whether this is the network function of a BlueField, whose own processor manages its VFs in DPU
/// mode.
bool isBlueField(std::uint16_t vendor, std::uint16_t device);

/// What to do where the driver denies root an attribute of a VF (EPERM): mlx5 does if the PF does
/// not manage its embedded switch (mlx5_esw_allowed), OFED's also for the VLAN of a VF that has a
/// VGT+ trunk.
std::string deniedRemedy(std::uint16_t vendor, std::uint16_t device);

/// Whether mstconfig changes this function's firmware settings as remedies describe: NICs of
/// mlx5_core, also while no driver is bound. mlx4_core's NICs have one function for both ports.
bool hasMlx5Firmware(std::uint16_t vendor, const std::string& driver);

/// The setting with the link type of this PF's port, `LINK_TYPE_P1`. Each port has a PCI function
/// of its own, while all functions of a card share its settings.
std::string linkTypeSetting(const PciAddress& pf);

/// Value of that setting: 1 is InfiniBand, 2 Ethernet.
unsigned linkTypeValue(LinkLayer layer);

/// The command for these assignments (`SRIOV_EN=1`), and the power cycle that makes them effective.
std::string setFirmware(const PciAddress& pf, const std::vector<std::string>& assignments);

}  // namespace vfpass
