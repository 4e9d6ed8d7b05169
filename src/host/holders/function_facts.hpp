#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The sysfs data of a function that are needed to find its holders.
struct FunctionFacts {
  PciAddress address;
  std::string path;                      ///< below /sys/devices
  std::string driver;                    ///< empty: none
  std::uint32_t baseClass = 0;           ///< 0x02: network, 0x06: bridge
  bool isNetwork = false;                ///< a network device, whose driver should create a netdev
  std::optional<PciAddress> pf;          ///< its PF, if it is a VF
  std::vector<Netdev> netdevs;           ///< in our network namespace
  std::vector<std::string> rdmaDevices;  ///< visible in our namespace, without SoftRoCE
  LinkLayer linkLayer = LinkLayer::unknown;  ///< of its RDMA device or netdev
  std::vector<std::string> virtualDevices;   ///< created on it: `vDPA device vdpa0`, printable
};

/// Nullopt when there is no such function.
std::optional<FunctionFacts> readFunctionFacts(const Root& root, const PciAddress& address);

/// Whether it is bound to a host driver, through which it may be in use.
bool isDriven(const FunctionFacts& function);

/// The PCI function that a device on another bus belongs to. For bus `virtio` and device `virtio3`:
/// the function bound to virtio_pci. Nullopt when it belongs to none.
std::optional<PciAddress> functionOfDevice(const Root& root, const std::string& bus,
                                           const std::string& name);

/// The last PCI function in a sysfs path.
std::optional<PciAddress> lastFunctionOnPath(std::string_view path);

}  // namespace vfpass::host
