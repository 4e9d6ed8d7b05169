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

/// `sys/bus/pci/devices/0000:3b:00.1`
std::string functionPath(const PciAddress& function);
/// `sys/bus/pci/drivers/vfio-pci`. Throws Error for an invalid driver name: names come from
/// metadata and sysfs and must not lead to another directory.
std::string driverPath(const std::string& driver);

/// All PCI functions whose address begins with `prefix`, sorted by name.
std::vector<PciAddress> listFunctions(const Root& root, std::string_view prefix = {});

/// The class code, three bytes: 0x02.... is a network device.
std::uint32_t readClass(const Root& root, const PciAddress& function);

/// The PF of a VF; nullopt for any other function.
std::optional<PciAddress> readPfOf(const Root& root, const PciAddress& function);

/// Name of the bound driver; empty: none.
std::string readDriver(const Root& root, const PciAddress& function);

/// Netdevs of a function, uplink first and representors of VFs and subfunctions (switchdev mode)
/// last; within each group sorted by interface index.
std::vector<Netdev> readNetdevs(const Root& root, const PciAddress& function);

/// The names of the RDMA devices, without their ports.
std::vector<RdmaDevice> readRdmaDevices(const Root& root, const PciAddress& function);

/// Link layer of the RDMA device's first port, or of the netdev where there is no RDMA device.
LinkLayer readLinkLayer(const Root& root, const PciAddress& function);

/// Whether the PF's driver has files for its VFs (`sriov/N/`).
bool hasVfFiles(const Root& root, const PciAddress& pf);

std::optional<unsigned> readIommuGroup(const Root& root, const PciAddress& function);

/// All other functions in that IOMMU group, including bridges, by address.
std::vector<GroupPeer> readGroupPeers(const Root& root, const PciAddress& function, unsigned group);
GroupPeer readGroupPeer(const Root& root, const PciAddress& address);

/// A VF of a PF according to its `virtfnN` link.
struct VfLink {
  unsigned index = 0;
  PciAddress address;
};

/// VFs of a PF, by index. Read from the links, never from `sriov_numvfs`: reading that file takes
/// the device's lock and blocks forever while a removal hangs.
std::vector<VfLink> readVfLinks(const Root& root, const PciAddress& pf);

/// Location of a function, independent of netdev names: `pci0000:00/0000:00:01.0/0000:01:00.0`.
/// Empty when there is no function at that address.
std::string devicePath(const Root& root, const PciAddress& address);

/// A 16-bit identifier from sysfs; `path` is the path of the file `vendor` or `device`.
std::uint16_t readIdentifier(const Root& root, const std::string& path);

/// NUMA node of the function in directory `path`; -1 where the firmware does not specify it.
int readNumaNode(const Root& root, const std::string& path);

/// The PCI function of any type at this address; nullopt when there is none. `model` stays empty:
/// names come from libpci, which the hook does not link.
std::optional<Device> readPciFunction(const Root& root, const PciAddress& address);

}  // namespace vfpass::host
