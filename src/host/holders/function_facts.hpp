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

/// What sysfs says of a function whose holders are looked for.
struct FunctionFacts {
  PciAddress address;
  std::string path;              ///< below /sys/devices
  std::string driver;            ///< empty: none
  std::uint32_t baseClass = 0;   ///< 0x02: network, 0x06: bridge
  bool isNetwork = false;        ///< it is a network device, so its driver should make a netdev
  std::optional<PciAddress> pf;  ///< it is a VF of this one
  std::vector<Netdev> netdevs;   ///< in our network namespace
  std::vector<std::string> rdmaDevices;     ///< visible from here, SoftRoCE not included
  std::vector<std::string> virtualDevices;  ///< made of it: `vDPA device vdpa0`, printable
};

/// Nullopt when there is no such function.
std::optional<FunctionFacts> readFunctionFacts(const Root& root, const PciAddress& address);

/// It has a driver of the host's, which may have given it to somebody.
bool isDriven(const FunctionFacts& function);

/// The function that a device of some bus belongs to: of `virtio`, `virtio3` for example the one
/// that virtio_pci drives. Nullopt when it belongs to none.
std::optional<PciAddress> functionOfDevice(const Root& root, const std::string& bus,
                                           const std::string& name);

/// The last PCI function on a path of sysfs.
std::optional<PciAddress> lastFunctionOnPath(std::string_view path);

}  // namespace vfpass::host
