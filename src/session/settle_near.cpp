#include "vfpass/session/settle_near.hpp"

#include <algorithm>

#include "vfpass/inventory/read_topology.hpp"
#include "vfpass/plan/resolve_near.hpp"
#include "vfpass/session/host_topology.hpp"

namespace vfpass::session {
namespace {

Uuid ownerOf(const Mapping& mapping, const std::vector<Lease>& leases) {
  const auto found = std::ranges::find_if(leases, [&](const Lease& lease) {
    return lease.domainName == mapping.vm || toString(lease.domain) == mapping.vm;
  });
  return found == leases.end() ? Uuid{} : found->domain;
}

}  // namespace

void settleNear(Session& session, Subject& subject, const std::vector<Lease>& leases) {
  if (!plan::hasNear(subject.mapping) &&
      std::ranges::none_of(subject.otherMappings, plan::hasNear)) {
    return;
  }
  const Topology topology = inventory::readTopology(session.root(), host::Serials::skip);
  const Inventory inventory = session.inventory({}, {});
  const HostPolicy& policy = session.configuration().host;
  const auto resolve = [&](const Mapping& mapping, const Uuid& domain) {
    return plan::resolveNear({mapping, policy, inventory, topology, leases, domain});
  };
  auto resolution = resolve(subject.mapping, subject.domain.uuid);
  subject.mapping = std::move(resolution.mapping);
  subject.nearFaults = std::move(resolution.faults);
  subject.nearReasons = std::move(resolution.reasons);
  for (auto& mapping : subject.otherMappings) {  // they count where this attach creates VFs
    if (plan::hasNear(mapping)) {
      mapping = resolve(mapping, ownerOf(mapping, leases)).mapping;
    }
  }
}

std::vector<Mapping> nearSettled(Session& session, const Topology& topology,
                                 std::vector<Mapping> mappings) {
  if (std::ranges::none_of(mappings, plan::hasNear)) {
    return mappings;
  }
  const auto leases = leasesOfTree(session);
  const Inventory inventory = session.inventory({}, {});
  const HostPolicy& policy = session.configuration().host;
  for (Mapping& mapping : mappings) {
    const Uuid owner = ownerOf(mapping, leases);
    mapping = plan::resolveNear({mapping, policy, inventory, topology, leases, owner}).mapping;
  }
  return mappings;
}

}  // namespace vfpass::session
