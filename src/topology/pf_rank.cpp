#include "pf_rank.hpp"

#include <algorithm>

namespace vfpass::topology {
namespace {

// The rate of the fastest port in Mbit/s; 0: unknown.
std::uint64_t portRateOf(const TopologyFunction& pf) {
  std::uint64_t rate = 0;
  for (const auto& device : pf.rdma) {
    for (const auto& port : device.ports) {
      rate = std::max<std::uint64_t>(rate, port.rate);
    }
  }
  return rate;
}

}  // namespace

std::uint64_t shareOf(const TopologyFunction& pf, unsigned taken) {
  const std::uint64_t port = portRateOf(pf);
  // One bit per transfer and lane; the encoding overhead is the same for all.
  const std::uint64_t link = std::uint64_t{pf.best.speed} * pf.best.width;
  const std::uint64_t rate = port == 0 || link == 0 ? std::max(port, link) : std::min(port, link);
  return rate / (std::uint64_t{taken} + 1);
}

PfRank rankOf(const TopologyFunction& pf, unsigned taken) {
  return {!isUsable(pf), ~shareOf(pf, taken), taken, pf.address};
}

}  // namespace vfpass::topology
