#include "drift.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::commands {
namespace {

bool isObservable(const VfSettings& seen, Attribute attribute) {
  return only(seen, {attribute}) != VfSettings{};
}

// For a device that is missing or elsewhere: a mapping names it by its place.
std::string replaceRemedy(const Lease& lease) {
  const std::string name = shellArgument(lease.domainName);
  return "; if that is intended, run `vfpass detach " + name +
         "`, correct the mapping, then run `vfpass attach " + name + "`";
}

std::string restartRemedy(const Lease& lease) {
  return "; shut " + shellArgument(lease.domainName) +
         " down, then start it again, so that the hook prepares the device";
}

// The hook creates VFs only for a PF that has none: a change of the count removes all of them. With
// fewer than the lease needs it refuses the start, so that a restart would cost the running VM.
std::string missingVfRemedy(const Lease& lease, const PhysicalFunction& pf) {
  return pf.vfs.empty() ? restartRemedy(lease)
                        : "; the next start of " + shellArgument(lease.domainName) +
                              " is refused until PF " + toString(pf.address) +
                              " has it: raise its `virtual-function-count` in host.yaml and run "
                              "`vfpass host apply` once no VM uses VFs of this PF";
}

std::vector<std::string> attributeDrift(const Lease& lease, const VirtualFunction& vf) {
  const std::string name = shellArgument(lease.domainName);
  // What the kernel changes only without a driver, it does not change under a running guest.
  const VfSettings settings = acceptedSettings(lease);
  const auto unbound = changing(settings, Change::unbound);
  std::vector<std::string> drift;
  for (const Attribute attribute : differingAttributes(settings, vf.settings)) {
    // An unobservable attribute is not drift: GUIDs that were not set over netlink read as empty.
    if (isObservable(vf.settings, attribute)) {
      const std::string remedy = std::ranges::find(unbound, attribute) == unbound.end()
                                     ? "run `vfpass attach " + name + "` to set it again"
                                     : "shut " + name + " down, then start it again, to set it";
      drift.push_back("kernel: " + std::string(toString(attribute)) + " is " +
                      describe(vf.settings, attribute) + ", attach set " +
                      describe(vfOf(lease).settings, attribute) + "; " + remedy);
    }
  }
  return drift;
}

// While the guest is stopped any driver is fine: prepare binds the function again.
std::vector<std::string> functionDrift(const Lease& lease, const Device* function, bool runs,
                                       bool domainActive) {
  const std::string name = "kernel: " + describeDevice(lease);
  std::vector<std::string> drift;
  if (function == nullptr) {
    drift.push_back(name + " does not exist" + replaceRemedy(lease));
    return drift;
  }
  if (function->path != lease.pfPath) {
    drift.push_back(name + " is now at " + function->path + replaceRemedy(lease));
  }
  if (runs && !domainActive) {
    drift.push_back(name +
                    ": the guest stopped without a release; run `vfpass recover` to reset the "
                    "function");
  } else if (runs && function->driver != vfioDriverOf(lease)) {
    drift.push_back(name + " is not bound to " + vfioDriverOf(lease) + restartRemedy(lease));
  }
  return drift;
}

}  // namespace

std::vector<std::string> kernelDrift(const Lease& lease, const Inventory& inventory,
                                     const std::string& bootId, bool domainActive) {
  if (!isVf(lease)) {
    const bool runs = lease.state != LeaseState::reserved && lease.bootId == bootId;
    return functionDrift(lease, findFunction(inventory, lease.device), runs, domainActive);
  }
  // The PF, whether or not the guest runs.
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  if (pf == nullptr) {
    return {"kernel: PF " + toString(lease.pf) +
            " does not exist or has no driver; `vfpass doctor` names the cause" +
            replaceRemedy(lease)};
  }
  std::vector<std::string> drift;
  if (pf->path != lease.pfPath) {
    drift.push_back("kernel: PF " + toString(lease.pf) + " is now at " + pf->path +
                    replaceRemedy(lease));
  }
  // The guest may run on, but its VF has the card's failure, and the next start is refused.
  if (const auto fault = faultOfPort(*pf)) {
    drift.push_back("kernel: PF " + toString(lease.pf) + " " + fault->what + "; " + fault->remedy);
  }
  const bool runs = lease.state != LeaseState::reserved && lease.bootId == bootId;
  if (!runs) {
    return drift;
  }
  // The VF of a guest that has started since the host booted.
  if (!domainActive) {
    drift.push_back(
        "kernel: the guest stopped without a release; run `vfpass recover` to scrub the VF");
  } else if (vfOf(lease).index >= pf->vfs.size()) {
    drift.push_back("kernel: VF " + std::to_string(vfOf(lease).index) + " does not exist" +
                    missingVfRemedy(lease, *pf));
  } else {
    const auto attributes = attributeDrift(lease, pf->vfs[vfOf(lease).index]);
    drift.insert(drift.end(), attributes.begin(), attributes.end());
    if (pf->vfs[vfOf(lease).index].driver != vfioDriverOf(lease)) {
      drift.push_back("kernel: " + toString(lease.device) + " is not bound to " +
                      vfioDriverOf(lease) + restartRemedy(lease));
    }
  }
  return drift;
}

namespace {

bool isNeutral(const VfSettings& seen, Attribute attribute, bool infiniband) {
  return only(seen, {attribute}) == only(neutralSettings(infiniband), {attribute});
}

// A VF has the lease's values after attach and neutral ones after a stop: one of the lease's own
// shows that it was not stopped since. Attributes that a stop does not touch show nothing.
bool hasValueOfLease(const VfSettings& wanted, const VfSettings& seen, bool infiniband) {
  const VfSettings kept = keptSettings(wanted);
  return std::ranges::any_of(differingAttributes(wanted, kept), [&](Attribute attribute) {
    return only(wanted, {attribute}) == only(seen, {attribute}) &&
           !isNeutral(seen, attribute, infiniband);
  });
}

}  // namespace

std::vector<std::string> attributesToSet(const Lease& lease, const Inventory& inventory,
                                         const std::string& bootId) {
  const VirtualFunction* vf = findVf(inventory, lease);
  const bool stopped = lease.state == LeaseState::reserved && lease.bootId == bootId;
  if (!stopped || vf == nullptr) {
    return {};  // a boot creates VFs with values of their own
  }
  const bool infiniband = vfOf(lease).infiniband;
  const VfSettings wanted = acceptedSettings(lease);
  const VfSettings& seen = vf->settings;
  const bool attached = hasValueOfLease(wanted, seen, infiniband);
  std::vector<std::string> lines;
  for (const Attribute attribute : differingAttributes(wanted, seen)) {
    if (isObservable(seen, attribute) && (attached || !isNeutral(seen, attribute, infiniband))) {
      lines.push_back(std::string(toString(attribute)) + " " + describe(wanted, attribute) +
                      " instead of " + describe(seen, attribute));
    }
  }
  return lines;
}

std::vector<std::string> unobservedAttributes(const Lease& lease, const Inventory& inventory,
                                              const std::string& bootId) {
  const VirtualFunction* vf = findVf(inventory, lease);
  const bool runs = lease.state != LeaseState::reserved && lease.bootId == bootId;
  if (!runs || vf == nullptr) {
    return {};
  }
  const VfSettings& seen = vf->settings;
  std::vector<std::string> names;
  for (const Attribute attribute : differingAttributes(acceptedSettings(lease), seen)) {
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
  const std::string remedy = "; run `vfpass attach " + name +
                             "` to correct it, or `vfpass detach " + name + "` to remove it";
  std::vector<std::string> drift;
  const auto parsed = domain::parseDomain(domain.persistentXml);
  for (const auto& line : domain::elementDifferences(domain.persistentXml, persistent)) {
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

// The leases of a running domain cannot be rebuilt from metadata without a valid seal.
std::vector<std::string> liveSealDrift(const DomainDescription& domain, const SealKey& key) {
  const std::string fault =
      domain.active ? domain::sealFault(domain::parseDomain(domain.liveXml), key) : "";
  if (fault.empty()) {
    return {};
  }
  return {"running domain: " + fault + "; run `vfpass attach " + printable(domain.name) +
          "` to seal it"};
}

// The device was unplugged, or only the running domain had it and that has stopped.
std::vector<std::string> liveDrift(const DomainDescription& domain,
                                   const std::vector<Lease>& leases) {
  const auto plugged =
      domain.active ? domain::entriesWithDevice(domain.liveXml, leases) : std::set<std::string>();
  std::vector<std::string> drift;
  for (const auto& lease : leases) {
    if (domain.active && lease.state == LeaseState::running && !plugged.contains(lease.entry)) {
      drift.push_back("domain: the running guest does not have " + lease.entry +
                      "; run `vfpass attach " + shellArgument(domain.name) + "` to plug it again");
    } else if (domain.active && lease.state == LeaseState::running) {
      for (const auto& line : domain::runningDifferences(domain.liveXml, {lease})) {
        drift.push_back("running domain: " + line + "; shut " + shellArgument(domain.name) +
                        " down, then start it again");
      }
    } else if (!domain.active && !lease.persistent) {
      drift.push_back("domain: only the running guest had " + lease.entry +
                      ", and it has stopped; run `vfpass gc` to return the device to the host");
    }
  }
  return drift;
}

}  // namespace

std::vector<std::string> domainDrift(const DomainDescription* domain,
                                     const std::vector<Lease>& leases, const SealKey& key) {
  if (domain == nullptr) {
    const bool persistent = std::ranges::any_of(leases, &Lease::persistent);
    const std::string command =
        !persistent ? "gc"
                    : "detach " + shellQuoted(leases.empty() ? "" : leases.front().domainName);
    return {"domain: does not exist any more; run `vfpass " + printable(command) +
            "` to release its devices"};
  }
  std::vector<Lease> persistent = leases;
  std::erase_if(persistent, [](const Lease& lease) { return !lease.persistent; });
  auto drift = xmlDrift(*domain, persistent, key);
  for (const auto& lines : {liveSealDrift(*domain, key), liveDrift(*domain, leases)}) {
    drift.insert(drift.end(), lines.begin(), lines.end());
  }
  return drift;
}

std::string poolDrift(const Lease& lease, const Inventory& inventory,
                      const std::vector<NetworkPool>& pools) {
  const PhysicalFunction* pf = findPf(inventory, lease);
  const NetworkPool* pool = plan::findPool(pools, lease.device, pf == nullptr ? "" : pf->netdev());
  return pool == nullptr
             ? ""
             : "network: " + toString(lease.device) + " is also in the pool of libvirt network " +
                   printable(pool->network) +
                   ", which can give it to other guests; remove it from the network, or run "
                   "`vfpass detach " +
                   shellArgument(lease.domainName) + "`";
}

std::string managedSaveDrift(const DomainDescription& domain) {
  if (!domain.managedSave) {
    return {};
  }
  return "domain: the next start of " + printable(domain.name) +
         " restores its managed save image, which has the devices of that time; run "
         "`virsh managedsave-remove " +
         shellArgument(domain.name) + "` to discard the image";
}

}  // namespace vfpass::commands
