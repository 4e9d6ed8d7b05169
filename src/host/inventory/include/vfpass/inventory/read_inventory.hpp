#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// All SR-IOV capable NICs of the host below `root`, and those of the given functions that exist.
Inventory readInventory(const std::filesystem::path& root = "/",
                        const std::vector<PciAddress>& functions = {});
Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions = {},
                        host::Serials serials = host::Serials::read);

/// Reads the serial numbers of those of the inventory's PFs that are in `pfs` and have none yet.
void addSerials(const host::Root& root, const std::vector<PciAddress>& pfs, Inventory& inventory);

/// The same PFs without their VFs, attributes and addresses: enough to select PFs.
Inventory readPfIdentities(host::Root root, host::Serials serials = host::Serials::read);

/// All PFs for a list of PFs: of their VFs only index and address.
Inventory readPfList(host::Root root);

/// The host's NICs that are neither PFs of readPfList() nor their VFs: without SR-IOV capability.
/// Functions that manage NVLink have that role.
std::vector<Device> readOtherNics(const host::Root& root, const Inventory& inventory);

/// All PFs for a list of VFs: without driver overrides and users of VFs, and without upper devices
/// and addresses of PFs.
Inventory readVfList(host::Root root, host::Serials serials = host::Serials::read);

/// Every PCI function below `root` and its place in the PCI tree. Reads few files of each, in one
/// pass. The only slow reads are the ports of PFs and the serial numbers of cards. Reports
/// functions that disappear meanwhile and invalid data in `problems`. Never fails.
Topology readTopology(const host::Root& root, host::Serials serials = host::Serials::read);

/// Memory BARs in the text of a function's `resource` file, which has a line `start end flags` for
/// each resource: `count` lines from line `first` on. Omits unused BARs.
std::vector<MemoryBar> memoryBars(std::string_view resource, std::size_t first, std::size_t count);

/// The same for one VF: each VF BAR line of the PF covers the BARs of `totalVfs` VFs.
std::vector<MemoryBar> vfMemoryBars(std::string_view resource, unsigned totalVfs);

/// BARs of these functions of `topology` (for a PF also those of one VF), and the host's memory,
/// hugepages and address bits. Omits what is unreadable or invalid.
HostCapacity readCapacity(const host::Root& root, const Topology& topology,
                          const std::set<PciAddress>& functions);

/// From proc/cpuinfo and sys/devices/system/node; a kernel without NUMA has no nodes.
Processors readProcessors(const host::Root& root);

}  // namespace vfpass::inventory
