#include "vfpass/session/observe_peer_mapping.hpp"

#include <algorithm>

#include "vfpass/base/version_text.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/host/vfio_users.hpp"
#include "vfpass/plan/judge_peer_mapping.hpp"

namespace vfpass::session {
namespace {

// iommufd if any device uses it: that device cannot reach the others' BARs.
std::optional<VfioBackend> openBackend(Session& session, const std::vector<Lease>& leases) {
  const host::Root root = session.root();
  const host::VfioUsers users = host::readVfioUsers(root);
  std::optional<VfioBackend> backend;
  for (const Lease& lease : leases) {
    const auto own = host::openBackendOf(root, lease.vf, users);
    backend = own == VfioBackend::iommufd || !backend ? own : backend;
  }
  return backend;
}

}  // namespace

std::optional<PeerMapping> peerMappingOf(Session& session, const DomainDescription& domain,
                                         const std::vector<Lease>& leases) {
  const std::string& xml = domain.active ? domain.liveXml : domain.persistentXml;
  if (domain::guestMemory(xml).devices < 2) {
    return std::nullopt;
  }
  PeerMapping mapping;
  mapping.domainName = domain.name;
  mapping.domain = domain.uuid;
  const auto open = domain.active ? openBackend(session, leases) : std::nullopt;
  mapping.running = open.has_value();
  mapping.backend = open.value_or(domain::configuredBackend(xml));
  const bool asks = mapping.backend == VfioBackend::iommufd;
  plan::judgePeerMapping(
      mapping, leadingVersion(session.root().readText("proc/sys/kernel/osrelease").value_or("")),
      asks ? session.hypervisor().versions().qemu : std::nullopt);
  return mapping;
}

}  // namespace vfpass::session
