#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/device.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A function whose holders are wanted: path, class, driver, PF, netdevs in our network namespace,
/// RDMA devices that are visible in it, without SoftRoCE, and link layer.
struct FunctionFacts : Device {
  bool isNetwork = false;  ///< a network device, whose driver should create a netdev
  std::vector<std::string> virtualDevices;  ///< created on it: `vDPA device vdpa0`, printable
};

/// Nullopt when there is no such function.
std::optional<FunctionFacts> readFunctionFacts(const Root& root, const PciAddress& address);

/// Whether it is bound to a host driver, through which it may be in use.
bool isDriven(const Device& function);

/// The PCI function that a device on another bus belongs to. For bus `virtio` and device `virtio3`:
/// the function bound to virtio_pci. Nullopt when it belongs to none.
std::optional<PciAddress> functionOfDevice(const Root& root, const std::string& bus,
                                           const std::string& name);

/// The last PCI function in a sysfs path.
std::optional<PciAddress> lastFunctionOnPath(std::string_view path);

}  // namespace vfpass::host
