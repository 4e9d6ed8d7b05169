#include "vfpass/session/running_guest.hpp"

#include <algorithm>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/session/subject.hpp"

namespace vfpass::session {
namespace {

std::vector<Lease> leasesInUse(Session& session, const DomainDescription& domain) {
  std::vector<Lease> leases = leasesOf(session.readLeases(), domain.uuid);
  std::erase_if(leases, [](const Lease& lease) { return lease.state != LeaseState::running; });
  return leases;
}

std::vector<Lease> requireAny(std::vector<Lease> leases, const DomainDescription& domain,
                              const std::string& what) {
  if (leases.empty()) {
    throw Error(
        "domain " + printable(domain.name) + ": running without a leased " + what,
        "run `vfpass attach " + shellArgument(domain.name) + "` to attach the mapping's devices",
        ExitCode::unverified);
  }
  return leases;
}

}  // namespace

DomainDescription runningGuest(Session& session, const std::string& vm,
                               const std::string& command) {
  const auto domain = session.hypervisor().findDomain(vm);
  if (!domain) {
    throw Error("libvirt has no domain " + printable(vm),
                "run `virsh list --all` to list the domains", ExitCode::badInput);
  }
  if (!domain->active) {
    throw Error("domain " + printable(domain->name) + " is not running",
                "run `virsh start " + shellArgument(domain->name) + "`, then `vfpass " + command +
                    "` again",
                ExitCode::unverified);
  }
  return *domain;
}

std::vector<Lease> runningLeases(Session& session, const DomainDescription& domain) {
  return requireAny(leasesInUse(session, domain), domain, "device");
}

std::vector<Lease> runningVfs(Session& session, const DomainDescription& domain) {
  std::vector<Lease> leases = leasesInUse(session, domain);
  std::erase_if(leases, [](const Lease& lease) { return !isVf(lease); });
  return requireAny(std::move(leases), domain, "VF");
}

}  // namespace vfpass::session
