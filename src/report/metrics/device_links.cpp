#include <algorithm>

#include "vfpass/metrics/metrics.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::metrics {

std::vector<DeviceLink> linksOf(const Topology& topology, const std::set<PciAddress>& devices) {
  std::vector<DeviceLink> links;
  for (std::size_t number = 0; number < topology.functions.size(); ++number) {
    const Device& function = topology.functions[number];
    if (!devices.contains(function.address) || function.link.width == 0) {
      continue;
    }
    const auto path = topology::linksAbove(topology, number);
    const auto slowest = std::ranges::min_element(path, {}, &topology::Link::share);
    links.push_back({function.address, slowest->share});
  }
  return links;
}

}  // namespace vfpass::metrics
