#include "drift.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

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
                      describe(lease.settings, attribute));
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
  } else if (runs && function->driver != "vfio-pci") {
    drift.push_back(name + " is not on vfio-pci");
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

std::vector<std::string> xmlDrift(const DomainDescription* domain,
                                  const std::vector<Lease>& leases) {
  if (domain == nullptr) {
    return {"domain: it does not exist any more; `vfpass detach` gives its devices back"};
  }
  if (domain::carriesLeases(domain->persistentXml, leases)) {
    return {};
  }
  std::vector<std::string> drift;
  for (const auto& line :
       domain::claimDifferences(domain::parseDomain(domain->persistentXml), leases)) {
    drift.push_back("XML: " + line);
  }
  if (drift.empty()) {
    drift.emplace_back("XML: the vfpass metadata or devices were changed");
  }
  return drift;
}

}  // namespace vfpass::cli
