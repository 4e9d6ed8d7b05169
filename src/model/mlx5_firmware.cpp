#include "vfpass/mlx5_firmware.hpp"

#include <algorithm>
#include <array>

#include "vfpass/base/text.hpp"

namespace vfpass {

bool isBlueField(std::uint16_t vendor, std::uint16_t device) {
  // From mlx5's table of devices (mlx5_core_pci_table).
  constexpr std::array<std::uint16_t, 4> devices{0xa2d2, 0xa2d6, 0xa2dc, 0xa2df};
  return vendor == mellanox && std::ranges::find(devices, device) != devices.end();
}

std::string deniedRemedy(std::uint16_t vendor, std::uint16_t device) {
  constexpr const char* keep =
      "write `mac: keep` into the mapping, which then sets no MAC, and no other attribute";
  if (isBlueField(vendor, device)) {
    return "set the attributes on the BlueField's own processor, which manages the VFs in DPU "
           "mode, and " +
           std::string(keep) + "; or switch the card to NIC mode (`vfpass doctor`: dpu-mode)";
  }
  return "if another processor or host manages the embedded switch of this PF, set the attributes "
         "there, and " +
         std::string(keep) +
         "; if only a VLAN is denied and the driver is OFED's, remove the VF's VGT+ trunk "
         "(sriov/N/trunk below the PF)";
}

bool hasMlx5Firmware(std::uint16_t vendor, const std::string& driver) {
  return vendor == mellanox && driver != "mlx4_core";
}

std::string linkTypeSetting(const PciAddress& pf) {
  return "LINK_TYPE_P" + std::to_string(pf.function + 1);
}

unsigned linkTypeValue(LinkLayer layer) { return layer == LinkLayer::infiniband ? 1 : 2; }

std::string setFirmware(const PciAddress& pf, const std::vector<std::string>& assignments) {
  return "mstconfig -d " + toString(pf) + " set " + join(assignments, " ") +
         ", then power-cycle the machine";
}

}  // namespace vfpass
