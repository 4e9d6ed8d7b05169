#include "vfpass/inventory/read_inventory.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "read_pci_function.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {
namespace {

struct Place {
  PciAddress address;
  std::string path;    ///< below /sys/devices
  std::string bridge;  ///< `pci0000:3a`
  std::string above;   ///< second to last component of the path
};

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool isPlain(std::string_view component) {
  return !component.empty() && component != "." && component != "..";
}

// `../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0`; sysfs links are relative. More
// components can come between `devices/` and the bridge (`platform/...`, a VMD's own root bus).
std::optional<Place> placeOf(const std::string& name, std::string_view target) {
  constexpr std::string_view prefix = "../../../devices/";
  const auto address = parsePciAddress(name);
  if (!address || toString(*address) != name || !target.starts_with(prefix)) {
    return std::nullopt;
  }
  const auto path = target.substr(prefix.size());
  const auto parts = components(path);
  if (parts.size() < 2 || parts.back() != name || !std::ranges::all_of(parts, isPlain)) {
    return std::nullopt;
  }
  const auto bridge = std::find_if(parts.rbegin(), parts.rend(),
                                   [](std::string_view part) { return part.starts_with("pci"); });
  return Place{*address, std::string(path),
               std::string(bridge == parts.rend() ? parts.front() : *bridge),
               std::string(parts[parts.size() - 2])};
}

std::size_t bridgeNumber(const std::vector<HostBridge>& bridges, const std::string& name) {
  const auto found = std::ranges::lower_bound(bridges, name, {}, &HostBridge::name);
  return static_cast<std::size_t>(found - bridges.begin());
}

std::vector<HostBridge> hostBridges(const std::vector<Place>& places) {
  std::set<std::string> names;
  for (const Place& place : places) {
    names.insert(place.bridge);
  }
  std::vector<HostBridge> bridges;
  for (const std::string& name : names) {
    bridges.push_back({name, -1});
  }
  return bridges;
}

std::size_t numberOf(const Topology& topology, const Device& function) {
  return static_cast<std::size_t>(&function - topology.functions.data());
}

// A parent's path is the child's path without its last component, so parents cannot form a cycle.
void findParent(Topology& topology, Device& function, const std::string& above) {
  const auto address = parsePciAddress(above);
  if (!address) {
    return;  // the root bus
  }
  const Device* parent = findFunction(topology, *address);
  if (parent == nullptr || function.path != parent->path + "/" + toString(function.address)) {
    topology.problems.push_back(
        {toString(function.address), "its parent " + above +
                                         " is missing or at a different path; "
                                         "treating the function as a device on the root bus"});
    return;
  }
  function.parent = numberOf(topology, *parent);
}

/// The place of each function: address, device path, host bridge and parent of every function of
/// the host, sorted by address; everything else is empty. A function's place follows from its link
/// in sys/bus/pci/devices. An invalid link is a problem, and its function is omitted. A parent at a
/// different path is a problem, and its child has no parent. The result is therefore always a
/// forest.
Topology readPlaces(const host::Root& root) {
  constexpr const char* bus = "sys/bus/pci/devices";
  Topology topology;
  const host::Folder folder(root, bus);
  std::vector<Place> places;
  // Where each function is, from its link.
  for (const std::string& name : root.list(bus)) {
    const auto target = folder.linkTarget(name);
    if (auto place = target ? placeOf(name, *target) : std::nullopt) {
      places.push_back(std::move(*place));
    } else if (target || !root.isLive()) {  // without a link, it has just been removed
      topology.problems.push_back({name, "its link in " + std::string(bus) + " is invalid"});
    }
  }
  std::ranges::sort(places, {}, &Place::address);
  // Every function below its host bridge, then below its parent, which must already be there.
  topology.hostBridges = hostBridges(places);
  for (const Place& place : places) {
    Device function;
    function.address = place.address;
    function.path = place.path;
    function.hostBridge = bridgeNumber(topology.hostBridges, place.bridge);
    topology.functions.push_back(std::move(function));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    findParent(topology, topology.functions[i], places[i].above);
  }
  return topology;
}

struct VfPlace {
  std::size_t pf = 0;
  unsigned index = 0;
};

// The PF's links give the index of each VF. Reads them once for each PF: one link for each VF, no
// files.
void takeVfLinks(const host::Folder& folder, std::size_t pf, const Topology& topology,
                 std::map<std::size_t, VfPlace>& places) {
  for (const host::VfLink& link : host::readVfLinks(folder)) {
    const Device* vf = findFunction(topology, link.address);
    if (vf != nullptr && vf != &topology.functions[pf]) {
      places.insert({numberOf(topology, *vf), {pf, link.index}});
    }
  }
}

void relate(Topology& topology, const std::map<std::size_t, VfPlace>& places) {
  for (const auto& [vf, place] : places) {
    Device& function = topology.functions[vf];
    Device& pf = topology.functions[place.pf];
    if (function.physicalFunction != pf.address || pf.physicalFunction) {
      topology.problems.push_back(
          {toString(function.address),
           "PF " + toString(pf.address) + " lists it as a VF, but it names another PF or none"});
      continue;
    }
    function.vfIndex = place.index;
    ++pf.vfCount;
  }
  for (Device& function : topology.functions) {
    if (!function.physicalFunction) {
      continue;
    }
    const Device& pf = *findFunction(topology, *function.physicalFunction);
    if (pf.physicalFunction) {
      topology.problems.push_back(
          {toString(function.address), "its PF " + toString(pf.address) + " is itself a VF"});
      function.physicalFunction.reset();
    } else {  // a VF takes these from its PF
      function.numaNode = pf.numaNode;
      function.link = pf.link;
      function.best = pf.best;
    }
  }
}

void takeNodes(Topology& topology) {
  for (const Device& function : topology.functions) {
    int& node = topology.hostBridges[function.hostBridge].numaNode;
    node = node < 0 ? function.numaNode : node;
  }
}

// Whether the function may manage a board's NVLink, so that its VPD decides its role: those of HGX
// B200 are InfiniBand controllers without SR-IOV capability. On other hosts such a card is rare,
// and a read of the VPD takes up to tenths of a second.
bool mayManageNvlink(const Topology& topology, const Device& function) {
  constexpr std::uint32_t infinibandController = 0x0207;
  const bool likely = function.totalVfs == 0 && function.classCode >> 8U == infinibandController;
  return function.role == FunctionRole::nic && function.vendor == mellanox &&
         (likely || std::ranges::any_of(topology.functions, isBlackwellModule));
}

// All functions of a card have the same vital product data, and the kernel reads it four bytes at a
// time.
void readCards(const host::Root& root, host::Serials serials, Topology& topology) {
  std::map<PciAddress, host::VitalProductData> cards;
  for (Device& function : topology.functions) {
    const bool card = function.role == FunctionRole::gpu || function.role == FunctionRole::nic;
    const bool candidate = mayManageNvlink(topology, function);
    if (!card || function.physicalFunction || (serials == host::Serials::skip && !candidate)) {
      continue;
    }
    PciAddress first = function.address;
    first.function = 0;
    auto [found, isNew] = cards.try_emplace(first);
    if (isNew) {
      found->second = host::readVpd(root, function.address);
    }
    function.serial = serials == host::Serials::read ? found->second.serial : "";
    if (host::managesNvlink(found->second, function.vendor)) {
      function.role = FunctionRole::nvlinkManagement;
    }
  }
}

// The PF that has the same card as a DMA function; nullopt if none or several have.
std::optional<std::size_t> pfOfCard(const std::map<std::size_t, std::string>& cards,
                                    const std::string& card) {
  std::optional<std::size_t> found;
  for (const auto& [pf, other] : cards) {
    if (!card.empty() && other == card) {
      if (found) {
        return std::nullopt;
      }
      found = pf;
    }
  }
  return found;
}

// Only on hosts that have such DMA functions, because reading vital product data takes time.
void pairDirectNics(const host::Root& root, Topology& topology) {
  const auto cardsOf = [&](auto isSuch) {
    std::map<std::size_t, std::string> cards;
    for (std::size_t i = 0; i < topology.functions.size(); ++i) {
      if (isSuch(topology.functions[i])) {
        cards[i] = host::readVpd(root, topology.functions[i].address).card;
      }
    }
    return cards;
  };
  const auto dmaFunctions = cardsOf(isDirectNicDma);
  if (dmaFunctions.empty()) {
    return;
  }
  const auto pfs = cardsOf([](const Device& function) {
    return isPf(function) && function.vendor == mellanox && !isDirectNicDma(function);
  });
  for (const auto& [dma, card] : dmaFunctions) {
    if (const auto pf = pfOfCard(pfs, card)) {
      topology.directNics.push_back({dma, *pf});
    }
  }
}

void readHolders(const host::Root& root, Topology& topology) {
  const auto onVfio = [](const Device& function) { return isVfioDriver(function.driver); };
  if (std::ranges::none_of(topology.functions, onVfio)) {
    return;  // no need to read all of /proc
  }
  const host::VfioUsers users = host::readVfioUsers(root);
  for (Device& function : topology.functions) {
    if (!users.empty() && onVfio(function)) {
      function.vfioUser = host::vfioUserOf(root, function.address, users).value_or("");
    }
  }
}

// What a thread collects in addition to the functions it reads.
struct Part {
  std::map<std::size_t, VfPlace> places;
  std::vector<TopologyProblem> problems;
};

void readOne(const host::Folder& devices, std::size_t number, Topology& topology, Part& part) {
  Device& function = topology.functions[number];
  const host::Folder folder(devices, function.path);
  const auto link = folder ? folder.linkName("physfn") : std::nullopt;
  const auto pf = link ? parsePciAddress(*link) : std::nullopt;
  if (pf && *pf != function.address && findFunction(topology, *pf) != nullptr) {
    function.physicalFunction = pf;
  }
  if (!readFacts(folder, function.physicalFunction.has_value(), function, part.problems)) {
    part.problems.push_back({toString(function.address), "no longer present"});
  } else if (function.totalVfs > 0) {
    takeVfLinks(folder, number, topology, part.places);
  }
}

// Nearly all of the time goes into system calls, which several threads make in parallel. Each
// function is written by one thread; other threads read only its address, which does not change. A
// recording keeps the order of reads and therefore uses one thread.
std::vector<Part> readParts(const host::Root& root, Topology& topology) {
  constexpr std::size_t maxThreads = 8;
  constexpr std::size_t functionsPerThread = 128;  // half a millisecond
  const host::Folder devices(root, "sys/devices");
  const std::size_t count = topology.functions.size();
  const std::size_t threads =
      root.recording() != nullptr
          ? 1
          : std::clamp<std::size_t>(std::min<std::size_t>(count / functionsPerThread,
                                                          std::thread::hardware_concurrency()),
                                    1, maxThreads);
  const auto read = [&](std::size_t thread) {
    Part part;
    for (std::size_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i) {
      readOne(devices, i, topology, part);
    }
    return part;
  };
  std::vector<std::future<Part>> others;
  for (std::size_t thread = 1; thread < threads; ++thread) {
    others.push_back(std::async(read, thread));
  }
  std::vector<Part> parts;
  parts.push_back(read(0));
  for (auto& other : others) {
    parts.push_back(other.get());
  }
  return parts;
}

}  // namespace

Topology readTopology(const host::Root& root, host::Serials serials) {
  Topology topology = readPlaces(root);
  std::map<std::size_t, VfPlace> places;
  for (Part& part : readParts(root, topology)) {
    places.merge(part.places);
    topology.problems.insert(topology.problems.end(), part.problems.begin(), part.problems.end());
  }
  relate(topology, places);
  guessPorts(topology);
  dropIntegratedGraphics(topology);
  takeNodes(topology);
  readCards(root, serials, topology);
  pairDirectNics(root, topology);
  readHolders(root, topology);
  topology.processors = readProcessors(root);
  return topology;
}

}  // namespace vfpass::inventory
