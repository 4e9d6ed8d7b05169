#include <algorithm>

#include "render_parts.hpp"

namespace vfpass::metrics {
namespace {

std::string netdevOf(const Observation& observation, const PciAddress& pf) {
  const auto found = std::ranges::find(observation.pfs, pf, &PhysicalFunction::address);
  return found == observation.pfs.end() ? std::string() : found->netdev;
}

void addCounts(const std::vector<Lease>& leases, Exposition& target) {
  for (const LeaseState state : {LeaseState::reserved, LeaseState::starting, LeaseState::running}) {
    const auto count = std::ranges::count(leases, state, &Lease::state);
    target.add(families::leases, {std::string(toString(state))}, static_cast<std::uint64_t>(count));
  }
}

void addInfo(const Observation& observation, const Lease& lease, Exposition& target) {
  const bool vf = isVf(lease);
  target.add(families::leaseInfo,
             {lease.entry, std::string(toString(kindOf(lease))), guestIdentityOf(lease),
              toString(lease.vf), vf ? netdevOf(observation, lease.pf) : "",
              std::string(toString(lease.state)), toString(lease.domain),
              vf ? std::to_string(vfOf(lease).index) : "", lease.domainName},
             std::uint64_t{1});
}

void addEntry(const report::StatusEntry& entry, Exposition& target) {
  const Lease& lease = entry.lease;
  const std::string uuid = toString(lease.domain);
  const std::vector<std::string> labels{lease.entry, toString(lease.vf), uuid, lease.domainName};
  target.add(families::leaseDrift, labels, std::uint64_t{entry.drift.size()});
  target.add(families::leaseUnobservable, labels, std::uint64_t{entry.notObservable.size()});
  target.add(families::domainRunning, {uuid, lease.domainName}, std::uint64_t{entry.domainActive});
}

}  // namespace

void addLeases(const Observation& observation, Exposition& target) {
  if (observation.leases) {
    addCounts(*observation.leases, target);
    for (const Lease& lease : *observation.leases) {
      addInfo(observation, lease, target);
    }
  }
  if (observation.entries) {
    for (const auto& entry : *observation.entries) {
      addEntry(entry, target);
    }
  }
  for (const auto& refused : observation.refused) {
    target.add(families::metadataRefused, {toString(refused.domain), refused.domainName},
               std::uint64_t{1});
  }
  for (const auto& [vm, attached] : observation.mappings) {
    target.add(families::mappingAttached, {vm}, std::uint64_t{attached});
  }
  if (observation.configurationProblems) {
    target.add(families::configurationProblems, {},
               std::uint64_t{*observation.configurationProblems});
  }
  if (observation.openOperations) {
    target.add(families::openOperations, {}, std::uint64_t{*observation.openOperations});
  }
}

}  // namespace vfpass::metrics
