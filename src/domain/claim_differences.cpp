#include <algorithm>

#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

std::string place(const Claim& claim) {
  return claim.hasGuestAddress ? toString(claim.guestAddress) : "unset";
}

std::string nameOf(const Lease& lease) {
  const bool vf = isVf(lease);
  return (vf ? "VF '" : "PCI function '") + lease.entry + "'";
}

std::string yesOrNo(bool value) { return value ? "yes" : "no"; }

void compare(const Lease& lease, const Claim& claim, bool managed,
             std::vector<std::string>& differences) {
  const auto report = [&](const std::string& what) {
    differences.push_back(nameOf(lease) + ": " + what);
  };
  if (claim.device != lease.vf) {
    report("the XML claims host device " + toString(claim.device) + ", the lease records " +
           toString(lease.vf));
  }
  if (!claim.hasGuestAddress || claim.guestAddress != lease.guest.address) {
    report("its guest address in the XML is " + place(claim) + ", the lease records " +
           toString(lease.guest.address));
  }
  if (managed != lease.managed) {
    report("the XML has managed='" + yesOrNo(managed) + "', the lease records managed='" +
           yesOrNo(lease.managed) + "'");
  }
}

}  // namespace

std::vector<std::string> claimDifferences(const ParsedDomain& parsed,
                                          const std::vector<Lease>& leases) {
  std::vector<std::string> differences;
  for (const auto& lease : leases) {
    const auto alias = deviceAlias(lease);
    const auto found = std::find_if(parsed.claims.begin(), parsed.claims.end(),
                                    [&](const Claim& claim) { return claim.alias == alias; });
    if (found == parsed.claims.end()) {
      differences.push_back(nameOf(lease) + ": the XML has no device with alias " + alias);
      continue;
    }
    compare(lease, *found, parsed.managedAliases.contains(alias), differences);
  }
  return differences;
}

}  // namespace vfpass::domain
