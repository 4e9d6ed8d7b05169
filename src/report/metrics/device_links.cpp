#include <algorithm>

#include "vfpass/metrics/metrics.hpp"

namespace vfpass::metrics {
namespace {

double shareOf(unsigned current, unsigned device, unsigned port) {
  const unsigned possible = port == 0 ? device : std::min(device, port);
  return possible == 0 ? 1 : std::min(1.0, static_cast<double>(current) / possible);
}

}  // namespace

std::vector<DeviceLink> linksOf(const Topology& topology, const std::set<PciAddress>& devices) {
  std::vector<DeviceLink> links;
  for (const Device& function : topology.functions) {
    if (!devices.contains(function.address) || function.link.width == 0) {
      continue;
    }
    const PcieLink port = function.parent ? topology.functions[*function.parent].best : PcieLink{};
    const double width = shareOf(function.link.width, function.best.width, port.width);
    const double speed = function.role == FunctionRole::gpu
                             ? 1
                             : shareOf(function.link.speed, function.best.speed, port.speed);
    links.push_back({function.address, width * speed});
  }
  return links;
}

}  // namespace vfpass::metrics
