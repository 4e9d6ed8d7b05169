#include "vfpass/device.hpp"

#include <algorithm>
#include <array>

#include "vfpass/pci_address.hpp"

namespace vfpass {

const Netdev& Device::uplink() const {
  static const Netdev none;
  return netdevs.empty() ? none : netdevs.front();
}

const std::string& Device::rdmaDevice() const {
  static const std::string none;
  return rdma.empty() ? none : rdma.front().name;
}

const RdmaPort* Device::rdmaPort() const {
  return rdma.empty() || rdma.front().ports.empty() ? nullptr : &rdma.front().ports.front();
}

bool isPciBridge(std::uint32_t classCode) { return classCode >> 8U == 0x0604U; }

bool isBridge(const Device& device) {
  return device.classCode >> 16U == 0x06U && !isNvSwitch(device);
}

bool isNvSwitch(const Device& device) {
  constexpr std::uint32_t otherBridge = 0x0680;
  return device.vendor == nvidia && device.classCode >> 8U == otherBridge;
}

bool isBlackwellModule(const Device& device) {
  constexpr std::array<std::uint16_t, 2> modules{0x2901, 0x3182};
  return device.vendor == nvidia && std::ranges::find(modules, device.device) != modules.end();
}

}  // namespace vfpass
