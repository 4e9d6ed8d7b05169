#include "vfpass/inventory/read_inventory.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "read_pci_function.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
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

namespace {

constexpr std::uint64_t largestBar = 1ULL << 52U;

std::optional<MemoryBar> memoryBar(const PciResource& resource) {
  if ((resource.flags & memoryResource) == 0 || resource.bytes == 0 ||
      resource.bytes > largestBar) {
    return std::nullopt;
  }
  return MemoryBar{resource.bytes, (resource.flags & wideResource) != 0,
                   (resource.flags & prefetchableResource) != 0};
}

}  // namespace

std::vector<MemoryBar> memoryBars(std::string_view resource, std::size_t first, std::size_t count) {
  const auto resources = readPciResources(resource);
  std::vector<MemoryBar> bars;
  for (std::size_t i = first; i < std::min(resources.size(), first + count); ++i) {
    if (const auto bar = memoryBar(resources[i])) {
      bars.push_back(*bar);
    }
  }
  return bars;
}

std::vector<MemoryBar> vfMemoryBars(std::string_view resource, unsigned totalVfs) {
  if (totalVfs == 0) {
    return {};
  }
  auto bars = memoryBars(resource, firstVfBar, pciBars);
  for (MemoryBar& bar : bars) {
    bar.bytes /= totalVfs;
  }
  std::erase_if(bars, [](const MemoryBar& bar) { return bar.bytes == 0; });
  return bars;
}

namespace {

constexpr std::size_t cpuinfoLimit = 16384;  // enough for the first processor with all its flags
constexpr std::uint64_t kibibyte = 1024;
constexpr std::uint64_t maxKibibytes = 1ULL << 50U;
constexpr const char* nodeFolder = "sys/devices/system/node";

// `address sizes	: 46 bits physical, 48 bits virtual`; Arm has no such line.
unsigned readAddressBits(const host::Root& root) {
  for (const std::string& line :
       splitLines(root.readText("proc/cpuinfo", cpuinfoLimit).value_or(""))) {
    const std::string_view all = line;
    const auto colon = all.find(':');
    if (colon != std::string_view::npos && trim(all.substr(0, colon)) == "address sizes") {
      const auto value = trim(all.substr(colon + 1));
      const auto bits = parseNumber(value.substr(0, std::min(value.find(' '), value.size())));
      return bits && *bits <= 64 ? static_cast<unsigned>(*bits) : 0;
    }
  }
  return 0;
}

// `Node 0 MemTotal:       263814144 kB`
std::uint64_t readMemory(const host::Root& root, const std::string& node) {
  for (const std::string& line : splitLines(root.readText(node + "/meminfo").value_or(""))) {
    const auto at = line.find("MemTotal:");
    if (at != std::string::npos) {
      const auto value =
          trim(std::string_view(line).substr(at + std::string_view("MemTotal:").size()));
      const auto number = parseNumber(value.substr(0, std::min(value.find(' '), value.size())));
      return number && *number <= maxKibibytes ? *number * kibibyte : 0;
    }
  }
  return 0;
}

std::map<std::uint64_t, PagePool> readPages(const host::Root& root, const std::string& node) {
  constexpr std::string_view prefix = "hugepages-";
  std::map<std::uint64_t, PagePool> pools;
  for (const std::string& name : root.list(node + "/hugepages", prefix)) {
    std::string_view size = std::string_view(name).substr(prefix.size());
    size = size.substr(0, size.find("kB"));
    const auto kibibytes = parseNumber(size);
    if (kibibytes && *kibibytes <= maxKibibytes) {
      const std::string folder = node + "/hugepages/" + name;
      pools[*kibibytes * kibibyte] = {root.readNumber(folder + "/nr_hugepages").value_or(0),
                                      root.readNumber(folder + "/free_hugepages").value_or(0)};
    }
  }
  return pools;
}

}  // namespace

HostCapacity readCapacity(const host::Root& root, const Topology& topology,
                          const std::set<PciAddress>& functions) {
  HostCapacity capacity;
  capacity.addressBits = readAddressBits(root);
  for (const NumaNode& node : topology.processors.nodes) {
    const std::string folder = std::string(nodeFolder) + "/node" + std::to_string(node.number);
    capacity.nodes[node.number] = {readMemory(root, folder), readPages(root, folder)};
  }
  for (const PciAddress& address : functions) {
    const Device* function = findFunction(topology, address);
    if (function == nullptr) {
      continue;
    }
    const auto resource = root.readText("sys/devices/" + function->path + "/resource").value_or("");
    capacity.bars[address] = memoryBars(resource, 0, pciBars);
    if (function->totalVfs > 0) {
      capacity.vfBars[address] = vfMemoryBars(resource, function->totalVfs);
    }
  }
  return capacity;
}

namespace {

constexpr std::size_t maskLimit = 4096;
constexpr std::uint64_t nodeLimit = 4096;

bool isMask(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef,") == std::string_view::npos;
}

unsigned smallNumber(std::string_view text, int base) {
  return static_cast<unsigned>(std::min<std::uint64_t>(parseNumber(text, base).value_or(0), 65535));
}

void takeLine(std::string_view key, std::string_view value, Processors& processors) {
  if (key == "vendor_id") {  // x86 only; s390 has it too, but no PCI Express switches
    processors.architecture = "x86_64";
    processors.vendor = value.substr(0, 64);
  } else if (key == "cpu family") {
    processors.family = smallNumber(value, 10);
  } else if (key == "model") {
    processors.model = smallNumber(value, 10);
  } else if (key == "CPU implementer") {
    processors.architecture = "arm64";
    processors.vendor = "ARM";
  } else if (key == "CPU part" && value.starts_with("0x")) {
    processors.model = smallNumber(value.substr(2), 16);
  } else if (key == "cpu" && value.starts_with("POWER")) {
    processors.architecture = "ppc64";
    processors.vendor = "IBM";
  }
}

void readModel(const host::Root& root, Processors& processors) {
  for (const std::string& line : splitLines(root.readText("proc/cpuinfo").value_or(""))) {
    const std::string_view all = line;
    const auto colon = all.find(':');
    if (trim(all).empty()) {
      break;  // the first processor is representative
    }
    if (colon != std::string_view::npos) {
      takeLine(trim(all.substr(0, colon)), trim(all.substr(colon + 1)), processors);
    }
  }
}

}  // namespace

Processors readProcessors(const host::Root& root) {
  constexpr std::string_view prefix = "node";
  const std::string folder = "sys/devices/system/node";
  Processors processors;
  readModel(root, processors);
  for (const std::string& name : root.list(folder, prefix)) {
    const auto number = parseNumber(std::string_view(name).substr(prefix.size()));
    if (!number || *number >= nodeLimit) {
      continue;
    }
    std::string mask = root.readText(folder + "/" + name + "/cpumap", maskLimit).value_or("");
    processors.nodes.push_back({static_cast<int>(*number), isMask(mask) ? mask : std::string{}});
  }
  std::ranges::sort(processors.nodes, {}, &NumaNode::number);
  return processors;
}

}  // namespace vfpass::inventory
