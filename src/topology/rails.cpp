#include "vfpass/topology/rails.hpp"

#include <algorithm>
#include <map>
#include <tuple>

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

// The PFs at the shortest distance there is.
Rail nearest(const Topology& topology, std::size_t gpu, const std::vector<std::size_t>& pfs) {
  Rail rail;
  rail.gpu = gpu;
  for (const std::size_t pf : pfs) {
    const Distance found = distance(topology, gpu, pf);
    if (found < rail.distance || rail.alike.empty()) {
      rail.distance = found;
      rail.alike.clear();
    }
    if (found == rail.distance) {
      rail.alike.push_back(pf);
    }
  }
  return rail;
}

void choose(const Topology& topology, Rail& rail, std::map<std::size_t, unsigned>& served) {
  const auto best =
      std::min_element(rail.alike.begin(), rail.alike.end(), [&](std::size_t one, std::size_t two) {
        const auto rank = [&](std::size_t pf) {
          return std::tuple(!isUsable(topology.functions[pf]), served[pf], pf);
        };
        return rank(one) < rank(two);
      });
  if (best == rail.alike.end()) {
    return;
  }
  rail.pf = *best;
  rail.alike.erase(best);
  ++served[*rail.pf];
}

}  // namespace

std::vector<std::size_t> gpus(const Topology& topology) {
  return numbersOf(topology, [](const TopologyFunction& function) {
    return function.role == FunctionRole::gpu && !function.physicalFunction;
  });
}

std::vector<std::size_t> pfs(const Topology& topology) { return numbersOf(topology, isPf); }

std::vector<Rail> rails(const Topology& topology) {
  return rails(topology, gpus(topology), pfs(topology));
}

std::vector<Rail> rails(const Topology& topology, const std::vector<std::size_t>& gpus,
                        const std::vector<std::size_t>& pfs) {
  std::vector<Rail> found;
  for (const std::size_t gpu : gpus) {
    found.push_back(nearest(topology, gpu, pfs));
  }
  std::vector<Rail*> order;
  for (Rail& rail : found) {
    order.push_back(&rail);
  }
  std::stable_sort(order.begin(), order.end(), [](const Rail* one, const Rail* other) {
    return std::pair(one->distance, one->alike.size()) <
           std::pair(other->distance, other->alike.size());
  });
  std::map<std::size_t, unsigned> served;
  for (Rail* rail : order) {
    choose(topology, *rail, served);
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
