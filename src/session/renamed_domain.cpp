#include "vfpass/session/renamed_domain.hpp"

#include <algorithm>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/session/subject.hpp"

namespace vfpass::session {
namespace {

// Whether the mapping has an entry for each of these leases.
bool describes(const Mapping& mapping, const std::vector<Lease>& leases) {
  std::set<std::string> entries;
  for (const auto& vf : mapping.vfs) {
    entries.insert(vf.name);
  }
  for (const auto& gpu : mapping.functions) {
    entries.insert(gpu.name);
  }
  return !leases.empty() && std::all_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    return entries.contains(lease.entry);
  });
}

[[noreturn]] void throwRenamed(const Mapping& mapping, const DomainDescription& domain) {
  const std::string name = printable(domain.name);
  throw Error(printable(toString(mapping.vmPlace)) + ": libvirt has no domain " +
                  printable(mapping.vm) + ", and domain " + name +
                  " has leases that match the mapping; it was probably renamed",
              "set `vm: " + name + "` in the mapping", ExitCode::badInput);
}

}  // namespace

void throwIfRenamed(Session& session, const DomainDescription& domain) {
  const auto leases = leasesOf(session.readLeases(), domain.uuid);
  for (const auto& mapping : session.configuration().mappings) {
    if (describes(mapping, leases) && !session.hypervisor().findDomain(mapping.vm)) {
      throwRenamed(mapping, domain);
    }
  }
}

void throwIfRenamed(Session& session, const Mapping& mapping) {
  const auto leases = session.readLeases();
  std::set<Uuid> domains;
  for (const auto& lease : leases) {
    domains.insert(lease.domain);
  }
  for (const auto& uuid : domains) {
    const auto domain = describes(mapping, leasesOf(leases, uuid))
                            ? session.hypervisor().findDomain(toString(uuid))
                            : std::nullopt;
    if (domain &&
        config::findMapping(session.configuration(), domain->name, toString(uuid)) == nullptr) {
      throwRenamed(mapping, *domain);
    }
  }
}

}  // namespace vfpass::session
