#include "vfpass/plan/garbage.hpp"

#include <algorithm>

namespace vfpass::plan {

std::vector<Lease> findGarbage(const std::vector<Lease>& leases, const DomainUse& use) {
  std::vector<Lease> garbage;
  std::ranges::copy_if(leases, std::back_inserter(garbage), [&](const Lease& lease) {
    const bool plugged = use.active && (use.pluggedUnknown || use.plugged.contains(lease.entry));
    const bool configured =
        lease.persistent && (use.configuredUnknown || use.configured.contains(lease.entry));
    const bool awaited = !use.exists && use.mapped && lease.persistent;
    return !awaited && !plugged && !configured;
  });
  return garbage;
}

}  // namespace vfpass::plan
