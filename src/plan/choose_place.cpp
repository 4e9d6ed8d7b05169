#include "choose_place.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::plan {

bool Places::isTaken(const Lease& lease, const PciAddress& place) const {
  return assigned_.contains(place) ||
         std::any_of(input_.leases.begin(), input_.leases.end(), [&](const Lease& other) {
           return other.domain == input_.domain && other.vfName != lease.vfName &&
                  other.guest.address == place;
         });
}

void Places::assign(const Lease* earlier, Lease& lease, std::vector<Objection>& objections) {
  const bool plugs = input_.scope.live && !input_.plugged.contains(lease.vfName);
  if (earlier != nullptr && (!plugs || input_.pluggable.contains(lease.vfName))) {
    lease.guest = earlier->guest;
    return;
  }
  while (used_ < input_.placements.size()) {
    const auto& candidate = input_.placements[used_++];
    // Places of a running domain are all there are; others come one for each new lease.
    if (!input_.scope.live || !isTaken(lease, candidate.address)) {
      assigned_.insert(candidate.address);
      lease.guest = candidate;
      return;
    }
  }
  if (plugs) {
    objections.push_back({"the running domain " + printable(input_.domainName) +
                              " has no free hotplug port for " + lease.vfName,
                          "attach with --config and start it anew, or give it spare "
                          "pcie-root-port controllers before its next start",
                          ExitCode::failed});
  }
}

}  // namespace vfpass::plan
