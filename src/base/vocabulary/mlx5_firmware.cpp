#include "vfpass/mlx5_firmware.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass {

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
