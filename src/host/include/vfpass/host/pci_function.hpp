#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/device.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// How much is read of a device's netdevs and RDMA devices.
enum class Ports {
  none,
  names,   ///< of both; sorted
  netdevs  ///< all of a netdev, uplink first; names of RDMA devices
};

/// What a reader wants to know of a device. Each costs system calls: the hook has time for few, and
/// there can be a thousand VFs.
struct WantedFacts {
  bool driver = true;
  bool ids = false;        ///< vendor, device and class
  bool subsystem = false;  ///< its vendor and device
  bool numaNode = false;
  bool iommuGroup = false;  ///< without its other members
  Ports ports = Ports::none;
  bool linkLayer = false;  ///< of these ports
};

/// Reads what is wanted from the device's directory; the rest of `device` stays.
void readDevice(const Folder& folder, const WantedFacts& wanted, Device& device);

/// A VF of a PF according to its `virtfnN` link.
struct VfLink {
  unsigned index = 0;
  PciAddress address;
};

/// VFs of a PF, by index. Read from the links in its directory, never from `sriov_numvfs`: reading
/// that file takes the device's lock and blocks forever while a removal hangs.
std::vector<VfLink> readVfLinks(const Folder& folder);

/// A 16-bit field of the SR-IOV capability.
unsigned readSriovField(const Folder& folder, const std::string& file);

/// The kernel's names: InfiniBand, Ethernet.
LinkLayer parseLinkLayer(std::string_view text);

/// `sys/bus/pci/devices/0000:3b:00.1`
std::string functionPath(const PciAddress& function);
/// `sys/bus/pci/drivers/vfio-pci`. Throws Error for an invalid driver name: names come from
/// metadata and sysfs and must not lead to another directory.
std::string driverPath(const std::string& driver);

/// All PCI functions whose address begins with `prefix`, sorted by name.
std::vector<PciAddress> listFunctions(const Root& root, std::string_view prefix = {});

/// The other functions on its bus, which a reset of the bus would reset too; none on a root bus.
std::vector<PciAddress> readBusPeers(const Root& root, const PciAddress& function);

/// The class code, three bytes: 0x02.... is a network device.
std::uint32_t readClass(const Root& root, const PciAddress& function);

/// Base class 03 (display controllers) or 12 (processing accelerators), such as GPUs have.
bool isDisplayOrAccelerator(std::uint32_t classCode);

/// The PF of a VF; nullopt for any other function.
std::optional<PciAddress> readPfOf(const Root& root, const PciAddress& function);

/// Name of the bound driver; empty: none.
std::string readDriver(const Root& root, const PciAddress& function);

/// Of a function that may not exist.
Device readDevice(const Root& root, const PciAddress& address, const WantedFacts& wanted);

/// Netdevs of a function, uplink first and representors of VFs and subfunctions (switchdev mode)
/// last; within each group sorted by interface index.
std::vector<Netdev> readNetdevs(const Root& root, const PciAddress& function);

/// Whether the PF's driver has files for its VFs (`sriov/N/`).
bool hasVfFiles(const Root& root, const PciAddress& pf);

/// The number in the name of a group, the target of a device's link.
std::optional<unsigned> iommuGroupIn(const std::optional<std::string>& link);
std::optional<unsigned> readIommuGroup(const Root& root, const PciAddress& function);

/// All other functions in that IOMMU group, including bridges, by address.
std::vector<GroupPeer> readGroupPeers(const Root& root, const PciAddress& function, unsigned group);
GroupPeer readGroupPeer(const Root& root, const PciAddress& address);

/// Reads its IOMMU group and groupPeers.
void readGroup(const Root& root, Device& device);
/// Reads driverOverride and locked of several devices.
void readOverrides(const Root& root, const std::vector<Device*>& devices);
/// Reads who uses those on VFIO.
void readVfioUse(const Root& root, const std::vector<Device*>& devices);

std::vector<VfLink> readVfLinks(const Root& root, const PciAddress& pf);

/// Location of a function, independent of netdev names: `pci0000:00/0000:00:01.0/0000:01:00.0`.
/// Empty when there is no function at that address.
std::string devicePath(const Root& root, const PciAddress& address);

/// The PCI function of any type at this address; nullopt when there is none. `model` stays empty:
/// names come from libpci, which the hook does not link.
std::optional<Device> readPciFunction(const Root& root, const PciAddress& address);

}  // namespace vfpass::host
