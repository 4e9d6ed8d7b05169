#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"

namespace vfpass {

/// PCI vendor of ConnectX and BlueField NICs.
inline constexpr std::uint16_t mellanox = 0x15b3;

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

/// How a PF without IPoIB netdev gets one. The kernel sets GUIDs of VFs only through that netdev
/// (ipoib_main.c: ipoib_netdev_ops_pf), and udev does not load ib_ipoib: it has no modalias.
inline constexpr const char* ipoibRemedy =
    "run `modprobe ib_ipoib`, and install rdma-core, whose rdma-load-modules@infiniband.service "
    "loads it at boot";

}  // namespace vfpass
