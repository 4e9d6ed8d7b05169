#include "vfpass/inventory/read_topology.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <thread>

#include "function_role.hpp"
#include "integrated_graphics.hpp"
#include "model_names.hpp"
#include "pci_places.hpp"
#include "read_facts.hpp"
#include "read_processors.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/vfio_users.hpp"
#include "vfpass/host/vital_product_data.hpp"

namespace vfpass::inventory {
namespace {

constexpr unsigned vfLimit = 65535;  // SR-IOV's TotalVFs is a 16-bit field

std::optional<std::size_t> indexOf(const Topology& topology, const std::string& name) {
  const auto address = parsePciAddress(name);
  const TopologyFunction* found = address ? findFunction(topology, *address) : nullptr;
  return found == nullptr
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - topology.functions.data()));
}

struct VfPlace {
  std::size_t pf = 0;
  unsigned index = 0;
};

// The PF's links give the index of each VF. Reads them once for each PF: one link for each VF, no
// files.
void takeVfLinks(const host::Folder& folder, std::size_t pf, Topology& topology,
                 std::map<std::size_t, VfPlace>& places) {
  constexpr std::string_view prefix = "virtfn";
  for (const std::string& name : folder.list(".", prefix)) {
    const auto index = parseNumber(std::string_view(name).substr(prefix.size()));
    const auto target = folder.linkName(name);
    const auto vf = target ? indexOf(topology, *target) : std::nullopt;
    if (index && *index <= vfLimit && vf && *vf != pf) {
      places.insert({*vf, {pf, static_cast<unsigned>(*index)}});
    }
  }
}

void relate(Topology& topology, const std::map<std::size_t, VfPlace>& places) {
  for (const auto& [vf, place] : places) {
    TopologyFunction& function = topology.functions[vf];
    TopologyFunction& pf = topology.functions[place.pf];
    if (function.physicalFunction != place.pf || pf.physicalFunction) {
      topology.problems.push_back(
          {toString(function.address),
           "PF " + toString(pf.address) + " lists it as a VF, but it names another PF or none"});
      continue;
    }
    function.vfIndex = place.index;
    ++pf.vfCount;
  }
  for (TopologyFunction& function : topology.functions) {
    if (!function.physicalFunction) {
      continue;
    }
    const TopologyFunction& pf = topology.functions[*function.physicalFunction];
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
  for (const TopologyFunction& function : topology.functions) {
    int& node = topology.hostBridges[function.hostBridge].numaNode;
    node = node < 0 ? function.numaNode : node;
  }
}

// All functions of a card have the same serial number, and the kernel reads it four bytes at a
// time.
void readSerials(const host::Root& root, Topology& topology) {
  std::map<PciAddress, std::string> cards;
  for (TopologyFunction& function : topology.functions) {
    const bool wanted = function.role == FunctionRole::gpu || function.role == FunctionRole::nic;
    if (!wanted || function.physicalFunction) {
      continue;
    }
    PciAddress card = function.address;
    card.function = 0;
    auto [found, isNew] = cards.try_emplace(card);
    if (isNew) {
      found->second = host::readSerial(root, function.address);
    }
    function.serial = found->second;
  }
}

void readHolders(const host::Root& root, Topology& topology) {
  const auto onVfio = [](const TopologyFunction& function) {
    return host::isVfioDriver(function.driver);
  };
  if (std::ranges::none_of(topology.functions, onVfio)) {
    return;  // no need to read all of /proc
  }
  const host::VfioUsers users = host::readVfioUsers(root);
  for (TopologyFunction& function : topology.functions) {
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
  TopologyFunction& function = topology.functions[number];
  const host::Folder folder(devices, function.path);
  const auto pf = folder ? folder.linkName("physfn") : std::nullopt;
  function.physicalFunction = pf ? indexOf(topology, *pf) : std::nullopt;
  if (function.physicalFunction == number) {
    function.physicalFunction.reset();
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
  if (serials == host::Serials::read) {
    readSerials(root, topology);
  }
  readHolders(root, topology);
  topology.processors = readProcessors(root);
  return topology;
}

void nameModels(Topology& topology) {
  ModelNames names;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::string> known;
  for (TopologyFunction& function : topology.functions) {
    const bool wanted = function.role == FunctionRole::gpu || function.role == FunctionRole::nic ||
                        function.role == FunctionRole::nvswitch;
    if (!wanted || function.physicalFunction) {
      continue;
    }
    const auto [found, isNew] = known.try_emplace({function.vendor, function.device});
    if (isNew) {
      found->second = names.find(function.vendor, function.device);
    }
    function.model = found->second;
  }
}

}  // namespace vfpass::inventory
