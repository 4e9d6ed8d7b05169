#include "vfpass/plan/disruption.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

bool endsLag(const PhysicalFunction& pf) {
  return pf.lag && pf.eswitchMode != EswitchMode::switchdev;
}

std::string endOfLag(const RoceLag& lag) {
  return "the RoCE LAG of " + printable(lag.bond) + " is disabled" +
         (lag.rdmaDevice.empty()
              ? ""
              : " and its RDMA device " + printable(lag.rdmaDevice) + " removed");
}

}  // namespace

std::vector<std::string> disruptionsOf(const PhysicalFunction& pf) {
  const std::string netdev = "netdev " + printable(pf.netdev);
  std::vector<std::string> found;
  for (const auto& upper : pf.uppers) {
    found.push_back(netdev + " is below " + printable(upper));
  }
  if (!pf.addresses.empty()) {
    found.push_back(netdev + (pf.addresses.size() == 1 ? " has address " : " has addresses ") +
                    join(pf.addresses, ", "));
  }
  if (endsLag(pf)) {
    found.push_back(endOfLag(*pf.lag));
  }
  return found;
}

std::optional<PciAddress> lagDevicePf(const PhysicalFunction& pf) {
  return endsLag(pf) ? pf.lag->rdmaPf : std::nullopt;
}

std::optional<Objection> objectToCreation(const PhysicalFunction& pf,
                                          const std::set<Allowance>& allow) {
  if (!endsLag(pf) || allow.contains(Allowance::disruption)) {
    return std::nullopt;
  }
  return Objection{"creating the VFs of PF " + toString(pf.address) +
                       " would disrupt the host: " + endOfLag(*pf.lag),
                   "create them beforehand, when nobody is disrupted, with "
                   "`virtual-function-count` in host.yaml and `vfpass host apply`, or accept it "
                   "with `allow: [disruption]` in the mapping and run `vfpass attach`",
                   ExitCode::refused};
}

}  // namespace vfpass::plan
