#include "vfpass/inventory/read_inventory.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "read_pci_function.hpp"
#include "vfpass/host/system_kernel.hpp"

namespace vfpass::inventory {

Inventory readInventory(const std::filesystem::path& root,
                        const std::vector<PciAddress>& functions) {
  return readInventory(host::Root(root), functions);
}

Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions,
                        host::Serials serials) {
  host::SystemKernel kernel(std::move(root));
  Inventory inventory;
  inventory.pfs = kernel.readPfs(serials);
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  for (const PciAddress& address : functions) {
    if (auto function = kernel.readFunction(address)) {
      inventory.functions.push_back(std::move(*function));
    }
  }
  return inventory;
}

void addSerials(const host::Root& root, const std::vector<PciAddress>& pfs, Inventory& inventory) {
  for (PhysicalFunction& pf : inventory.pfs) {
    if (pf.serial.empty() && std::ranges::find(pfs, pf.address) != pfs.end()) {
      pf.serial = host::readSerial(root, pf.address);
    }
  }
}

Inventory readPfIdentities(host::Root root, host::Serials serials) {
  Inventory inventory;
  inventory.pfs = host::SystemKernel(std::move(root)).readPfIdentities(serials);
  return inventory;
}

Inventory readPfList(host::Root root) {
  host::SystemKernel kernel(std::move(root));
  Inventory inventory;
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  inventory.pfs = kernel.readPfIdentities();
  for (PhysicalFunction& pf : inventory.pfs) {
    for (const auto& [index, address] : kernel.vfAddresses(pf.address)) {
      pf.vfs.push_back({});
      pf.vfs.back().index = index;
      pf.vfs.back().address = address;
    }
  }
  return inventory;
}

namespace {

std::set<PciAddress> addressesOf(const Inventory& inventory) {
  std::set<PciAddress> addresses;
  for (const PhysicalFunction& pf : inventory.pfs) {
    addresses.insert(pf.address);
    for (const VirtualFunction& vf : pf.vfs) {
      addresses.insert(vf.address);
    }
  }
  return addresses;
}

// All functions of a card have the same vital product data; readTopology() reads, and a snapshot
// has, that of the first one.
bool managesNvlink(const host::Root& root, const Device& nic, std::map<PciAddress, bool>& cards) {
  constexpr std::uint32_t infinibandController = 0x0207;
  if (nic.classCode >> 8U != infinibandController) {
    return false;
  }
  PciAddress card = nic.address;
  card.function = 0;
  const auto [found, isNew] = cards.try_emplace(card);
  if (isNew) {
    found->second = host::managesNvlink(host::readVpd(root, nic.address), nic.vendor);
  }
  return found->second;
}

}  // namespace

std::vector<Device> readOtherNics(const host::Root& root, const Inventory& inventory) {
  constexpr const char* bus = "sys/bus/pci/devices";
  const std::set<PciAddress> known = addressesOf(inventory);
  std::map<PciAddress, bool> cards;
  std::vector<TopologyProblem> problems;  // `topo` reports them
  std::vector<Device> nics;
  for (const std::string& name : root.list(bus)) {
    const auto address = parsePciAddress(name);
    const host::Folder folder(root, std::string(bus) + "/" + name);
    if (!address || known.contains(*address) || !folder || folder.linkName("physfn")) {
      continue;
    }
    Device nic;
    nic.address = *address;
    if (!readFacts(folder, false, nic, problems) || nic.role != FunctionRole::nic) {
      continue;
    }
    if (managesNvlink(root, nic, cards)) {
      nic.role = FunctionRole::nvlinkManagement;
    }
    nics.push_back(std::move(nic));
  }
  std::ranges::sort(nics, {}, &Device::address);
  return nics;
}

Inventory readVfList(host::Root root, host::Serials serials) {
  Inventory inventory;
  inventory.pfs = host::SystemKernel(std::move(root)).readVfTable(serials);
  return inventory;
}

}  // namespace vfpass::inventory
