#include "vfpass/device.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<LinkLayer, 3> linkLayerNames{{{LinkLayer::unknown, "unknown"},
                                              {LinkLayer::ethernet, "ethernet"},
                                              {LinkLayer::infiniband, "infiniband"}}};

constexpr Names<FunctionRole, 8> roleNames{{{FunctionRole::other, "other"},
                                            {FunctionRole::gpu, "gpu"},
                                            {FunctionRole::nic, "nic"},
                                            {FunctionRole::nvswitch, "nvswitch"},
                                            {FunctionRole::rootPort, "root-port"},
                                            {FunctionRole::upstreamPort, "upstream-port"},
                                            {FunctionRole::downstreamPort, "downstream-port"},
                                            {FunctionRole::bridge, "bridge"}}};

}  // namespace

std::string_view toString(LinkLayer layer) { return nameOf(linkLayerNames, layer); }

std::string_view toString(FunctionRole role) { return nameOf(roleNames, role); }

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
  constexpr std::uint16_t nvidia = 0x10de;
  constexpr std::uint32_t otherBridge = 0x0680;
  return device.vendor == nvidia && device.classCode >> 8U == otherBridge;
}

}  // namespace vfpass
