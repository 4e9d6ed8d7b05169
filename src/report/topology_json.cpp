#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "json.hpp"
#include "topology_words.hpp"

namespace vfpass::report {
namespace {

Json nodeJson(int node) { return node < 0 ? Json() : Json(node); }

Json linkJson(const PcieLink& link) {
  if (link.speed == 0 || link.width == 0) {
    return {};
  }
  return {{"megatransfers", link.speed}, {"lanes", link.width}};
}

Json portJson(const RdmaPort& port) {
  return {{"number", port.number},
          {"state", textOrNull(port.state)},
          {"link_layer",
           port.linkLayer == LinkLayer::unknown ? Json() : Json(toString(port.linkLayer))},
          {"megabits", port.rate == 0 ? Json() : Json(port.rate)}};
}

Json rdmaJson(const RdmaDevice& device) {
  return {{"name", device.name},
          {"node_guid", textOrNull(device.nodeGuid)},
          {"firmware", textOrNull(device.firmware)},
          {"ports", listJson(device.ports, portJson)}};
}

struct Output {
  DocumentWriter& document;
  const TopologyWords& words;
  std::vector<std::string> addresses;  // of all functions: each occurs in many distances
};

std::vector<std::string> addressesOf(const std::vector<Device>& functions) {
  std::vector<std::string> addresses;
  for (const auto& function : functions) {
    addresses.push_back(toString(function.address));
  }
  return addresses;
}

std::string_view addressOf(const Output& out, const std::optional<std::size_t>& function) {
  return function ? std::string_view(out.addresses[*function]) : std::string_view();
}

Json netdevsJson(const Device& function) {
  return listJson(function.netdevs, [](const auto& netdev) { return netdev.name; });
}

void writeIdentity(DocumentWriter& document, const Device& function) {
  document.text("role", toString(function.role));
  document.text("class", hexText(function.classCode, 6));
  document.text("vendor", hexText(function.vendor, 4));
  document.text("device", hexText(function.device, 4));
  document.text("subsystem_vendor", hexText(function.subsystemVendor, 4));
  document.text("subsystem_device", hexText(function.subsystemDevice, 4));
  document.textOrNull("model", function.model);
  document.textOrNull("serial", function.serial);
  document.textOrNull("driver", function.driver);
}

void writeLocation(const Output& out, const Device& function) {
  DocumentWriter& document = out.document;
  document.value("iommu_group", valueOrNull(function.iommuGroup));
  document.value("numa_node", nodeJson(function.numaNode));
  document.text("host_bridge", out.words.topology().hostBridges[function.hostBridge].name);
  document.textOrNull("parent", addressOf(out, function.parent));
  document.value("link", linkJson(function.link));
  document.value("best_link", linkJson(function.best));
  const auto& pf = function.physicalFunction;
  document.textOrNull("pf", pf ? toString(*pf) : "");
  document.value("index", valueOrNull(function.vfIndex));
}

// Null for VFs, root ports and downstream ports, which have no link above them.
void writeLinkState(const Output& out, std::size_t number) {
  constexpr std::array<std::string_view, 5> names{"", "full", "idle", "degraded", "synthetic"};
  const bool isVf = out.words.function(number).physicalFunction.has_value();
  const auto link = topology::linkAbove(out.words.topology(), number);
  const auto state = static_cast<std::size_t>(link.state);
  out.document.textOrNull("link_state", isVf ? "" : names[state]);
}

void writeFunction(const Output& out, std::size_t number) {
  const Device& function = out.words.function(number);
  DocumentWriter& document = out.document;
  document.text("address", out.addresses[number]);
  writeIdentity(document, function);
  writeLocation(out, function);
  writeLinkState(out, number);
  document.number("vfs", function.vfCount);
  document.number("total_vfs", function.totalVfs);
  document.value("netdevs", netdevsJson(function));
  document.value("rdma", listJson(function.rdma, rdmaJson));
  document.textOrNull("vfio_user", function.vfioUser);
  document.value("lease", leaseJson(out.words.leaseOf(number)));
  if (!function.entry.empty()) {
    document.text("entry", function.entry);
  }
}

Json processorsJson(const Processors& processors) {
  Json nodes = listJson(processors.nodes, [](const auto& node) -> Json {
    return {{"number", node.number}, {"cpu_mask", textOrNull(node.cpuMask)}};
  });
  return {{"architecture", textOrNull(processors.architecture)},
          {"vendor", textOrNull(processors.vendor)},
          {"family", processors.family},
          {"model", processors.model},
          {"numa_nodes", nodes}};
}

void writeDistance(const Output& out, std::size_t gpu, std::size_t pf) {
  out.document.text("gpu", out.addresses[gpu]);
  out.document.text("pf", out.addresses[pf]);
  out.document.text("distance", toString(topology::dataDistance(out.words.topology(), gpu, pf)));
}

std::vector<std::pair<std::size_t, std::size_t>> pairsOf(const TopologyWords& words) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const std::size_t gpu : words.gpus()) {
    for (const std::size_t pf : words.pfs()) {
      pairs.emplace_back(gpu, pf);
    }
  }
  return pairs;
}

void writeGpuDistance(const Output& out, std::size_t gpu, std::size_t other) {
  out.document.text("gpu", out.addresses[gpu]);
  out.document.text("other_gpu", out.addresses[other]);
  out.document.text("distance", toString(topology::distance(out.words.topology(), gpu, other)));
}

// Each pair once.
std::vector<std::pair<std::size_t, std::size_t>> gpuPairsOf(const TopologyWords& words) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (auto gpu = words.gpus().begin(); gpu != words.gpus().end(); ++gpu) {
    for (auto other = std::next(gpu); other != words.gpus().end(); ++other) {
      pairs.emplace_back(*gpu, *other);
    }
  }
  return pairs;
}

std::vector<std::size_t> numbersOf(const std::vector<Device>& functions) {
  std::vector<std::size_t> numbers(functions.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

void writeRail(const Output& out, const topology::Rail& rail) {
  Json alike = listJson(rail.alike, [&](const std::size_t pf) { return out.addresses[pf]; });
  out.document.text("gpu", out.addresses[rail.gpu]);
  out.document.textOrNull("pf", addressOf(out, rail.pf));
  out.document.value("distance", rail.pf ? Json(toString(rail.distance)) : Json());
  out.document.value("as_near", alike);
}

}  // namespace

void writeTopologyJson(std::ostream& stream, const TopologyReport& report) {
  const TopologyWords words(report);
  const Topology& topology = report.topology;
  DocumentWriter document(stream);
  const Output out{document, words, addressesOf(topology.functions)};
  document.value("processors", processorsJson(topology.processors));
  document.list("host_bridges", topology.hostBridges, [&](const auto& bridge) {
    document.text("name", bridge.name);
    document.value("numa_node", nodeJson(bridge.numaNode));
  });
  document.list("functions", numbersOf(topology.functions),
                [&](std::size_t number) { writeFunction(out, number); });
  document.list("distances", pairsOf(words),
                [&](const auto& pair) { writeDistance(out, pair.first, pair.second); });
  document.list("gpu_distances", gpuPairsOf(words),
                [&](const auto& pair) { writeGpuDistance(out, pair.first, pair.second); });
  document.list("rails", words.rails(), [&](const auto& rail) { writeRail(out, rail); });
  document.list("problems", topology.problems, [&](const auto& problem) {
    document.text("object", problem.object);
    document.text("what", problem.what);
  });
}

}  // namespace vfpass::report
