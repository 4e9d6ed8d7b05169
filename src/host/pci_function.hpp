#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// `sys/bus/pci/devices/0000:3b:00.1`
std::string functionPath(const PciAddress& function);
/// Whether this can be a PCI driver's name: 1 to 63 characters of A-Z, a-z, 0-9, `_` and `-`.
bool isDriverName(std::string_view name);
/// `sys/bus/pci/drivers/vfio-pci`. Throws Error for what cannot be a driver's name: names come from
/// metadata and sysfs, and none may lead to another folder.
std::string driverPath(const std::string& driver);

/// Name of the bound driver; empty: none.
std::string readDriver(const Root& root, const PciAddress& function);

/// Netdevs of a function, uplink first: representors of VFs and subfunctions (switchdev mode) come
/// last, within each kind the oldest interface comes first.
std::vector<Netdev> readNetdevs(const Root& root, const PciAddress& function);

/// First RDMA device; empty: none.
std::string readRdmaDevice(const Root& root, const PciAddress& function);

/// Of the RDMA device's first port, or of the netdev where there is no RDMA device.
LinkLayer readLinkLayer(const Root& root, const PciAddress& function);

std::optional<unsigned> readIommuGroup(const Root& root, const PciAddress& function);

/// Everything else in that IOMMU group, bridges included.
std::vector<PciAddress> readGroupPeers(const Root& root, const PciAddress& function,
                                       unsigned group);

/// A VF of a PF by index, as its `virtfnN` link says.
struct VfLink {
  unsigned index = 0;
  PciAddress address;
};

/// VFs of a PF by index. From the links, never from `sriov_numvfs`: reading that takes the device's
/// lock and blocks for ever while a removal hangs.
std::vector<VfLink> readVfLinks(const Root& root, const PciAddress& pf);

}  // namespace vfpass::host
