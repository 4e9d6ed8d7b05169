#include "vfpass/plan/disruption.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::plan {

std::vector<std::string> disruptionsOf(const PhysicalFunction& pf, EswitchMode mode) {
  const std::string netdev = "netdev " + printable(pf.netdev);
  std::vector<std::string> found;
  for (const auto& upper : pf.uppers) {
    found.push_back(netdev + " is below " + printable(upper));
  }
  if (!pf.addresses.empty()) {
    found.push_back(netdev + (pf.addresses.size() == 1 ? " has address " : " has addresses ") +
                    join(pf.addresses, ", "));
  }
  if (mode == EswitchMode::legacy && pf.rdmaDevice.starts_with("mlx5_bond_")) {
    found.push_back("RoCE LAG " + printable(pf.rdmaDevice) + " is disabled");
  }
  return found;
}

}  // namespace vfpass::plan
