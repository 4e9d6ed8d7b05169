#include "drift.hpp"

#include <algorithm>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/seal.hpp"
#include "vfpass/plan/network_pools.hpp"

namespace vfpass::cli {
namespace {

bool isObservable(const VfSettings& seen, Attribute attribute) {
  return only(seen, {attribute}) != VfSettings{};
}

std::vector<std::string> attributeDrift(const Lease& lease, const VirtualFunction& vf) {
  std::vector<std::string> drift;
  for (const Attribute attribute : differingAttributes(lease.settings, vf.settings)) {
    // Only what can be seen to differ is drift; GUIDs that netlink did not set read as nothing.
    if (isObservable(vf.settings, attribute)) {
      drift.push_back("kernel: " + std::string(toString(attribute)) + " is " +
                      describe(vf.settings, attribute) + ", attached was " +
                      describe(lease.settings, attribute) + "; `vfpass attach " +
                      shellArgument(lease.domainName) + "` sets it again");
    }
  }
  return drift;
}

// Between two runs of the guest whatever driver it has is right: prepare binds it again.
std::vector<std::string> functionDrift(const Lease& lease, const PciFunction* function, bool runs,
                                       bool domainActive) {
  const std::string name = "kernel: " + describeDevice(lease);
  std::vector<std::string> drift;
  if (function == nullptr) {
    drift.push_back(name + " is not there");
    return drift;
  }
  if (function->path != lease.pfPath) {
    drift.push_back(name + " is now at " + function->path);
  }
  if (runs && !domainActive) {
    drift.push_back(name + ": the guest is gone without a release; `vfpass recover` resets it");
  } else if (runs && function->driver != vfioDriverOf(lease)) {
    drift.push_back(name + " is not on " + vfioDriverOf(lease));
  }
  return drift;
}

}  // namespace

std::vector<std::string> kernelDrift(const Lease& lease, const Inventory& inventory,
                                     const std::string& bootId, bool domainActive) {
  if (lease.kind == LeaseKind::pciFunction) {
    const bool runs = lease.state != LeaseState::reserved && lease.bootId == bootId;
    return functionDrift(lease, findFunction(inventory, lease.vf), runs, domainActive);
  }
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  if (pf == nullptr) {
    return {"kernel: PF " + toString(lease.pf) + " is not there or has no driver"};
  }
  std::vector<std::string> drift;
  if (pf->path != lease.pfPath) {
    drift.push_back("kernel: PF " + toString(lease.pf) + " is now at " + pf->path);
  }
  const bool runs = lease.state != LeaseState::reserved && lease.bootId == bootId;
  if (!runs) {
    return drift;
  }
  if (!domainActive) {
    drift.push_back("kernel: the guest is gone without a release; `vfpass recover` scrubs the VF");
  } else if (lease.vfIndex >= pf->vfs.size()) {
    drift.push_back("kernel: VF " + std::to_string(lease.vfIndex) + " is gone");
  } else {
    const auto attributes = attributeDrift(lease, pf->vfs[lease.vfIndex]);
    drift.insert(drift.end(), attributes.begin(), attributes.end());
    if (pf->vfs[lease.vfIndex].driver != "vfio-pci") {
      drift.push_back("kernel: " + toString(lease.vf) + " is not on vfio-pci");
    }
  }
  return drift;
}

std::vector<std::string> unobservedAttributes(const Lease& lease, const Inventory& inventory,
                                              const std::string& bootId) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  const bool runs = lease.state != LeaseState::reserved && lease.bootId == bootId;
  if (!runs || pf == nullptr || lease.vfIndex >= pf->vfs.size()) {
    return {};
  }
  const VfSettings& seen = pf->vfs[lease.vfIndex].settings;
  std::vector<std::string> names;
  for (const Attribute attribute : differingAttributes(lease.settings, seen)) {
    if (!isObservable(seen, attribute)) {
      names.push_back(std::string(toString(attribute)));
    }
  }
  return names;
}

namespace {

std::vector<std::string> xmlDrift(const DomainDescription& domain,
                                  const std::vector<Lease>& persistent, const SealKey& key) {
  if (!domain.persistent || domain::carriesLeases(domain.persistentXml, persistent, key)) {
    return {};
  }
  const std::string name = shellArgument(domain.name);
  const std::string remedy =
      "; `vfpass attach " + name + "` puts it right, `vfpass detach " + name + "` takes it out";
  std::vector<std::string> drift;
  const auto parsed = domain::parseDomain(domain.persistentXml);
  for (const auto& line : domain::claimDifferences(parsed, persistent)) {
    drift.push_back("XML: " + line + remedy);
  }
  if (const std::string fault = domain::sealFault(parsed, key); !fault.empty()) {
    drift.push_back("XML: " + fault + remedy);
  }
  if (drift.empty()) {
    drift.push_back("XML: the vfpass metadata or devices were changed" + remedy);
  }
  return drift;
}

// The leases of a running domain cannot be rebuilt from these.
std::vector<std::string> liveSealDrift(const DomainDescription& domain, const SealKey& key) {
  const std::string fault =
      domain.active ? domain::sealFault(domain::parseDomain(domain.liveXml), key) : "";
  if (fault.empty()) {
    return {};
  }
  return {"domain: while it runs, " + fault + "; `vfpass attach " + printable(domain.name) +
          "` seals them"};
}

// Somebody has unplugged it, or the domain has stopped that alone had it.
std::vector<std::string> liveDrift(const DomainDescription& domain,
                                   const std::vector<Lease>& leases) {
  const auto plugged =
      domain.active ? domain::devicesOfOurs(domain.liveXml) : std::set<std::string>();
  std::vector<std::string> drift;
  for (const auto& lease : leases) {
    if (domain.active && lease.state == LeaseState::running && !plugged.contains(lease.vfName)) {
      drift.push_back("domain: the running guest does not have " + lease.vfName +
                      "; `vfpass attach " + shellArgument(domain.name) + "` plugs it in again");
    } else if (!domain.active && !lease.persistent) {
      drift.push_back("domain: only the running guest had " + lease.vfName +
                      ", and it has stopped; `vfpass gc` gives its device back");
    }
  }
  return drift;
}

}  // namespace

std::vector<std::string> domainDrift(const DomainDescription* domain,
                                     const std::vector<Lease>& leases, const SealKey& key) {
  if (domain == nullptr) {
    const bool persistent = std::any_of(leases.begin(), leases.end(),
                                        [](const Lease& lease) { return lease.persistent; });
    const std::string command =
        !persistent ? "gc"
                    : "detach " + shellQuoted(leases.empty() ? "" : leases.front().domainName);
    return {"domain: it does not exist any more; `vfpass " + printable(command) +
            "` releases its devices"};
  }
  std::vector<Lease> persistent;
  std::copy_if(leases.begin(), leases.end(), std::back_inserter(persistent),
               [](const Lease& lease) { return lease.persistent; });
  auto drift = xmlDrift(*domain, persistent, key);
  for (const auto& lines : {liveSealDrift(*domain, key), liveDrift(*domain, leases)}) {
    drift.insert(drift.end(), lines.begin(), lines.end());
  }
  return drift;
}

std::string poolDrift(const Lease& lease, const Inventory& inventory,
                      const std::vector<NetworkPool>& pools) {
  const PhysicalFunction* pf =
      lease.kind == LeaseKind::virtualFunction ? findPf(inventory, lease.pf) : nullptr;
  const NetworkPool* pool = plan::findPool(pools, lease.vf, pf == nullptr ? "" : pf->netdev);
  return pool == nullptr
             ? ""
             : "network: " + toString(lease.vf) + " belongs to the pool of libvirt network " +
                   printable(pool->network) +
                   " as well, which gives it to other guests; take it out of the "
                   "network, or `vfpass detach " +
                   shellArgument(lease.domainName) + "`";
}

}  // namespace vfpass::cli
