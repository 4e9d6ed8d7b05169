#include "choose_place.hpp"

#include <algorithm>

#include "mirror_places.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::plan {

bool Places::isTaken(const Lease& lease, const PciAddress& place) const {
  return assigned_.contains(place) ||
         std::any_of(input_.leases.begin(), input_.leases.end(), [&](const Lease& other) {
           return other.domain == input_.domain && other.entry != lease.entry &&
                  other.guest.address == place;
         });
}

// Among several free ports, takes the one with the most distances to other devices equal to the
// host's.
void Places::plug(Lease& lease, std::vector<Objection>& objections) {
  std::optional<GuestPlacement> best;
  std::size_t most = 0;
  for (const auto& candidate : input_.placements) {
    if (isTaken(lease, candidate.address)) {
      continue;
    }
    lease.guest = candidate;
    const std::size_t matching = matchingDistances(input_, placed_, lease);
    if (!best || matching > most) {
      best = candidate;
      most = matching;
    }
  }
  if (!best && input_.plugged.contains(lease.entry)) {
    return;
  }
  if (!best) {
    objections.push_back({"running domain " + printable(input_.domainName) +
                              " has no free hotplug port for " + lease.entry,
                          "attach with --config and restart the VM; " + portRemedy(),
                          ExitCode::failed});
    return;
  }
  lease.guest = *best;
  assigned_.insert(best->address);
}

std::string Places::portRemedy() const {
  return input_.mapping.topology == "mirror"
             ? "`spare-ports: 1` in the mapping keeps a port free at each switch from then on"
             : "to keep a port free in the future, add a <controller type='pci' "
               "model='pcie-root-port'/> to the domain";
}

void Places::assign(const Lease* earlier, Lease& lease, std::vector<Objection>& objections) {
  const bool plugs = input_.scope.live && !input_.plugged.contains(lease.entry);
  const bool flattens = input_.mapping.topology == "flat" && !input_.scope.live &&
                        earlier != nullptr && earlier->guest.isMirrored();
  if (earlier != nullptr && !flattens && (!plugs || input_.pluggable.contains(lease.entry))) {
    lease.guest = earlier->guest;
  } else if (input_.scope.live) {
    plug(lease, objections);
  } else if (used_ < input_.placements.size()) {  // one for each new device
    lease.guest = input_.placements[used_++];
  }
  placed_.push_back(lease);
}

}  // namespace vfpass::plan
