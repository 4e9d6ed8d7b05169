#include <numeric>
#include <utility>

#include "document_writer.hpp"
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
  Json ports = Json::array();
  for (const auto& port : device.ports) {
    ports.push_back(portJson(port));
  }
  return {{"name", device.name},
          {"node_guid", textOrNull(device.nodeGuid)},
          {"firmware", textOrNull(device.firmware)},
          {"ports", ports}};
}

Json addressOf(const TopologyWords& words, const std::optional<std::size_t>& function) {
  return function ? Json(toString(words.function(*function).address)) : Json();
}

Json functionJson(const TopologyWords& words, std::size_t number) {
  const TopologyFunction& function = words.function(number);
  Json netdevs = Json::array();
  for (const auto& netdev : function.netdevs) {
    netdevs.push_back(netdev.name);
  }
  Json rdma = Json::array();
  for (const auto& device : function.rdma) {
    rdma.push_back(rdmaJson(device));
  }
  Json json = {{"address", toString(function.address)},
               {"role", toString(function.role)},
               {"class", hexText(function.classCode, 6)},
               {"vendor", hexText(function.vendor, 4)},
               {"device", hexText(function.device, 4)},
               {"subsystem_vendor", hexText(function.subsystemVendor, 4)},
               {"subsystem_device", hexText(function.subsystemDevice, 4)},
               {"model", textOrNull(function.model)},
               {"serial", textOrNull(function.serial)},
               {"driver", textOrNull(function.driver)},
               {"iommu_group", valueOrNull(function.iommuGroup)},
               {"numa_node", nodeJson(function.numaNode)},
               {"host_bridge", words.topology().hostBridges[function.hostBridge].name},
               {"parent", addressOf(words, function.parent)},
               {"link", linkJson(function.link)},
               {"best_link", linkJson(function.best)},
               {"pf", addressOf(words, function.physicalFunction)},
               {"index", valueOrNull(function.vfIndex)},
               {"vfs", function.vfCount},
               {"total_vfs", function.totalVfs},
               {"netdevs", netdevs},
               {"rdma", rdma},
               {"vfio_user", textOrNull(function.vfioUser)},
               {"lease", leaseJson(words.leaseOf(number))}};
  if (!function.entry.empty()) {
    json["entry"] = function.entry;
  }
  return json;
}

Json processorsJson(const Processors& processors) {
  Json nodes = Json::array();
  for (const auto& node : processors.nodes) {
    nodes.push_back({{"number", node.number}, {"cpu_mask", textOrNull(node.cpuMask)}});
  }
  return {{"architecture", textOrNull(processors.architecture)},
          {"vendor", textOrNull(processors.vendor)},
          {"family", processors.family},
          {"model", processors.model},
          {"numa_nodes", nodes}};
}

Json distanceJson(const TopologyWords& words, std::size_t gpu, std::size_t pf) {
  return {{"gpu", addressOf(words, gpu)},
          {"pf", addressOf(words, pf)},
          {"distance", toString(topology::distance(words.topology(), gpu, pf))}};
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

std::vector<std::size_t> numbersOf(const std::vector<TopologyFunction>& functions) {
  std::vector<std::size_t> numbers(functions.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

Json railJson(const TopologyWords& words, const topology::Rail& rail) {
  Json alike = Json::array();
  for (const std::size_t pf : rail.alike) {
    alike.push_back(addressOf(words, pf));
  }
  return {{"gpu", addressOf(words, rail.gpu)},
          {"pf", addressOf(words, rail.pf)},
          {"distance", rail.pf ? Json(toString(rail.distance)) : Json()},
          {"as_near", alike}};
}

}  // namespace

void writeTopologyJson(std::ostream& out, const TopologyReport& report) {
  const TopologyWords words(report);
  const Topology& topology = report.topology;
  DocumentWriter document(out);
  document.member("processors", processorsJson(topology.processors));
  document.list("host_bridges", topology.hostBridges, [](const auto& bridge) -> Json {
    return {{"name", bridge.name}, {"numa_node", nodeJson(bridge.numaNode)}};
  });
  document.list("functions", numbersOf(topology.functions),
                [&](std::size_t number) { return functionJson(words, number); });
  document.list("distances", pairsOf(words),
                [&](const auto& pair) { return distanceJson(words, pair.first, pair.second); });
  document.list("rails", words.rails(), [&](const auto& rail) { return railJson(words, rail); });
  document.list("problems", topology.problems, [](const auto& problem) -> Json {
    return {{"object", problem.object}, {"what", problem.what}};
  });
}

}  // namespace vfpass::report
