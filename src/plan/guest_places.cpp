#include "attach_decisions.hpp"

#include <algorithm>
#include <map>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"
#include "vfpass/topology/mirror.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {
namespace {

std::size_t numberOf(const AttachInput& input, const Device& function) {
  return static_cast<std::size_t>(&function - input.topology.functions.data());
}

std::vector<GuestController> earlierControllers(const AttachInput& input) {
  std::vector<GuestController> controllers;
  for (const Lease& lease : persistentLeases(input.leases, input.domain)) {
    controllers.insert(controllers.end(), lease.guest.controllers.begin(),
                       lease.guest.controllers.end());
  }
  return controllers;
}

topology::MirrorDevice mirrorDevice(const AttachInput& input, const Lease& lease,
                                    const Device& function) {
  const Lease* earlier = earlierLease(input, lease.entry);
  const bool kept = earlier != nullptr && earlier->persistent && earlier->guest.isMirrored() &&
                    sameDevice(*earlier, lease);
  return {lease.entry, numberOf(input, function),
          kept ? std::optional(earlier->guest.address) : std::nullopt};
}

void object(const topology::Mirror& mirror, std::vector<Objection>& objections) {
  for (const auto& fault : mirror.faults) {
    objections.push_back({fault.what, fault.remedy, ExitCode::badInput});
  }
}

// Two VMs that share a switch compete for its uplink, but neither guest can tell.
void noteSharedSwitches(const AttachInput& input, AttachDecision& decision) {
  std::set<std::string> noted;
  for (const Lease& own : decision.leases) {
    const Device* function = hostFunction(input, own);
    for (const Lease& other : input.leases) {
      const Device* beside = hostFunction(input, other);
      const bool bothGpus = function != nullptr && beside != nullptr &&
                            function->role == FunctionRole::gpu &&
                            beside->role == FunctionRole::gpu;
      if (other.domain != input.domain && bothGpus &&
          topology::distance(input.topology, numberOf(input, *function),
                             numberOf(input, *beside)) == topology::Distance::pix &&
          noted.insert(own.entry).second) {
        decision.plan.notes.push_back(
            own.entry + " shares a host switch with " + printable(other.entry) + " of domain " +
            printable(other.domainName) + ": both VMs use that switch's uplink");
      }
    }
  }
}

// An arriving guest keeps the place of its VF: planArrival() refuses another one.
void noteTreeOfThisHost(const std::vector<Lease>& leases, std::vector<std::string>& notes) {
  const auto moves = std::ranges::find_if(leases, canMove);
  if (moves != leases.end()) {
    notes.push_back("the place of " + moves->entry +
                    " in the guest follows this host's PCI tree: the guest can migrate to a host "
                    "with another tree only with `topology: flat` in the mappings on both");
  }
}

// True when attach plugs a new device into the running domain.
bool plugsDevices(const AttachInput& input, const std::vector<Lease>& leases) {
  return input.scope.live && std::ranges::any_of(leases, [&](const Lease& lease) {
           return !input.plugged.contains(lease.entry);
         });
}

bool hasFlatPlaces(const AttachDecision& decision) {
  return std::ranges::any_of(decision.leases,
                             [](const Lease& each) { return !each.guest.isMirrored(); });
}

// The guest address must be the same in both configurations, and the running tree cannot change.
bool mustKeepPlaces(const AttachInput& input, const AttachDecision& decision) {
  return !input.scope.config ||
         (input.scope.live && (plugsDevices(input, decision.leases) || hasFlatPlaces(decision)));
}

void noteFlatPlaces(const AttachInput& input, AttachDecision& decision) {
  if (hasFlatPlaces(decision)) {
    decision.plan.notes.push_back(
        "domain " + printable(input.domainName) +
        " is running and its PCIe tree cannot change: run `vfpass attach --config " +
        shellArgument(input.domainName) +
        "` now or `vfpass attach` after shutdown to mirror the host's tree at the next start");
  }
}

std::vector<topology::PlacedDevice> placedDevices(const AttachInput& input,
                                                  const std::vector<Lease>& leases) {
  std::vector<topology::PlacedDevice> placed;
  for (const Lease& lease : leases) {
    if (const Device* function = hostFunction(input, lease)) {
      placed.push_back({lease.entry, function->address, lease.guest});
    }
  }
  return placed;
}

std::map<std::string, std::size_t> entriesOf(const Topology& guest) {
  std::map<std::string, std::size_t> entries;
  for (std::size_t i = 0; i < guest.functions.size(); ++i) {
    if (!guest.functions[i].entry.empty()) {
      entries[guest.functions[i].entry] = i;
    }
  }
  return entries;
}

// A plugged device takes a free port, and the best one may be occupied.
void noteFartherPlaces(const AttachInput& input, AttachDecision& decision) {
  for (const Lease& lease : decision.leases) {
    std::vector<Lease> others;
    std::ranges::copy_if(decision.leases, std::back_inserter(others),
                         [&lease](const Lease& other) { return other.entry != lease.entry; });
    const bool plugs = input.scope.live && !input.plugged.contains(lease.entry);
    const std::size_t matching = plugs ? matchingDistances(input, others, lease) : others.size();
    if (matching < others.size()) {
      decision.plan.notes.push_back(
          lease.entry + " has another distance to " + std::to_string(others.size() - matching) +
          " of its domain's devices than on the host: no better port is free; to lay the tree out "
          "again, run `vfpass detach` and `vfpass attach` while the VM is shut off");
    }
  }
}

// A port that leads to a switch below an expander bus needs `hotplug='off'`: libvirt 6.3, QEMU 5.0.
// Both support the controllers themselves in older versions.
std::optional<Objection> versionProblem(const AttachInput& input) {
  const auto& [libvirt, qemu] = input.versions;
  if (!isOlder(libvirt, {6, 3}) && !isOlder(qemu, {5, 0})) {
    return std::nullopt;
  }
  return Objection{"cannot mirror the host's PCI Express tree with libvirt " +
                       versionText(libvirt) + " and QEMU " + versionText(qemu) +
                       ": it requires libvirt 6.3 and QEMU 5.0",
                   "upgrade them, or set `topology: flat` in the mapping", ExitCode::badInput};
}

}  // namespace

const Device* hostFunction(const AttachInput& input, const Lease& lease) {
  return findFunction(input.topology, lease.pf);
}

void mirrorPlaces(const AttachInput& input, AttachDecision& decision) {
  if (!input.machine || input.mapping.topology != "mirror" || decision.leases.empty() ||
      !decision.objections.empty()) {
    return;
  }
  const auto adopted = std::ranges::find_if(decision.leases, isAdopted);
  if (adopted != decision.leases.end()) {
    decision.objections.push_back(
        {"`topology: mirror` would move " + adopted->entry + ", which vfpass has taken over with " +
             "the domain's own element",
         "set `topology: flat`, or `vfpass detach " + shellArgument(input.domainName) +
             "`, remove the element, and attach without `adopt: true`",
         ExitCode::badInput});
    return;
  }
  // A running tree cannot change.
  if (mustKeepPlaces(input, decision)) {
    noteFlatPlaces(input, decision);
    return noteFartherPlaces(input, decision);
  }
  if (const auto objection = versionProblem(input)) {
    decision.objections.push_back(*objection);
    return;
  }
  // The devices with their places on the host.
  topology::MirrorInput mirrorInput{
      input.topology, *input.machine, {}, earlierControllers(input), input.mapping.sparePorts};
  for (const Lease& lease : decision.leases) {
    const Device* function = hostFunction(input, lease);
    if (function == nullptr) {
      decision.objections.push_back(
          {lease.entry + ": " + describeDevice(lease) + " is not in the host's PCI tree",
           "check the tree with `vfpass topo`, or set `topology: flat` in the mapping",
           ExitCode::refused});
      return;
    }
    mirrorInput.devices.push_back(mirrorDevice(input, lease, *function));
  }
  // Their places in the mirrored tree.
  const topology::Mirror mirror = topology::mirrorTree(mirrorInput);
  object(mirror, decision.objections);
  for (std::size_t i = 0; i < mirror.placements.size(); ++i) {
    decision.leases[i].guest = mirror.placements[i];
  }
  decision.plan.notes.insert(decision.plan.notes.end(), mirror.notes.begin(), mirror.notes.end());
  noteTreeOfThisHost(decision.leases, decision.plan.notes);
  noteSharedSwitches(input, decision);
}

std::size_t matchingDistances(const AttachInput& input, const std::vector<Lease>& placed,
                              const Lease& candidate) {
  const Device* device = hostFunction(input, candidate);
  if (!input.machine || device == nullptr) {
    return 0;
  }
  auto all = placed;
  all.push_back(candidate);
  const Topology guest = topology::guestTopology(
      topology::withPlacements(*input.machine, placedDevices(input, all)), input.topology);
  const auto entries = entriesOf(guest);
  const auto own = entries.find(candidate.entry);
  std::size_t matching = 0;
  for (const Lease& lease : placed) {
    const Device* other = hostFunction(input, lease);
    const auto entry = entries.find(lease.entry);
    if (own == entries.end() || entry == entries.end() || other == nullptr) {
      continue;
    }
    const auto wanted = std::max(
        topology::Distance::pix,
        topology::distance(input.topology, numberOf(input, *device), numberOf(input, *other)));
    matching += topology::distance(guest, own->second, entry->second) == wanted ? 1 : 0;
  }
  return matching;
}

bool Places::isTaken(const Lease& lease, const PciAddress& place) const {
  return assigned_.contains(place) || std::ranges::any_of(input_.leases, [&](const Lease& other) {
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
