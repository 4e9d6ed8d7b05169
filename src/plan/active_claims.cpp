#include "vfpass/plan/active_claims.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/judge_holders.hpp"

namespace vfpass::plan {
namespace {

VfAddresses addressesOf(const Inventory& inventory) {
  VfAddresses addresses;
  for (const auto& pf : inventory.pfs) {
    for (const auto& vf : pf.vfs) {
      addresses[pf.address].emplace(vf.index, vf.address);
    }
  }
  return addresses;
}

std::set<PciAddress> touchedBy(const Plan& plan, const VfAddresses& addresses) {
  std::set<PciAddress> touched;
  for (const auto& step : plan.steps) {
    const auto functions = touchedFunctions(step.action, addresses);
    touched.insert(functions.begin(), functions.end());
  }
  return touched;
}

}  // namespace

std::vector<Objection> objectToActiveClaims(const Plan& plan, const Inventory& inventory,
                                            const std::vector<DomainSummary>& domains) {
  const auto touched = touchedBy(plan, addressesOf(inventory));
  std::vector<Objection> objections;
  for (const auto& domain : domains) {
    for (const auto& claim : domain.liveClaims) {
      if (domain.active && domain.uuid != plan.domain && touched.contains(claim.device)) {
        objections.push_back(
            {toString(claim.device) + " is in use by running domain " + printable(domain.name),
             "stop that domain, or unplug the device from it"});
      }
    }
  }
  return objections;
}

}  // namespace vfpass::plan
