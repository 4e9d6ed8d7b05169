#include "vfpass/topology/rails.hpp"

#include <algorithm>

#include "vfpass/topology/near.hpp"

namespace vfpass::topology {
namespace {

template <typename Test>
std::vector<std::size_t> numbersOf(const Topology& topology, Test test) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    if (test(topology.functions[i])) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

}  // namespace

std::vector<std::size_t> gpus(const Topology& topology) {
  return numbersOf(topology, [](const TopologyFunction& function) {
    return function.role == FunctionRole::gpu && !function.physicalFunction;
  });
}

std::vector<std::size_t> pfs(const Topology& topology) { return numbersOf(topology, isPf); }

std::vector<std::size_t> rdmaPfs(const Topology& topology) {
  return numbersOf(topology, isRdmaCapable);
}

std::vector<Rail> rails(const Topology& topology) {
  return rails(topology, gpus(topology), rdmaPfs(topology));
}

std::vector<Rail> rails(const Topology& topology, const std::vector<std::size_t>& gpus,
                        std::vector<std::size_t> pfs) {
  std::erase_if(pfs, [&](std::size_t pf) { return !isRdmaCapable(topology.functions[pf]); });
  std::vector<NearRequest> requests;
  for (const std::size_t gpu : gpus) {
    requests.push_back({gpu, {}});
  }
  const auto near = nearPfs(topology, requests, {pfs, {}, {}});
  std::vector<Rail> found;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    found.push_back({gpus[i], near[i].pf, near[i].distance, near[i].alike});
  }
  return found;
}

bool isUsable(const TopologyFunction& pf) {
  const auto active = [](const RdmaDevice& device) {
    return std::any_of(device.ports.begin(), device.ports.end(),
                       [](const RdmaPort& port) { return port.state == "ACTIVE"; });
  };
  if (!pf.rdma.empty()) {
    return std::any_of(pf.rdma.begin(), pf.rdma.end(), active);
  }
  return std::any_of(pf.netdevs.begin(), pf.netdevs.end(),
                     [](const Netdev& netdev) { return netdev.up; });
}

}  // namespace vfpass::topology
