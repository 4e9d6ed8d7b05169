#include <algorithm>

#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

std::string place(const Claim& claim) {
  return claim.hasGuestAddress ? toString(claim.guestAddress) : "no address";
}

std::string nameOf(const Lease& lease) {
  const bool vf = lease.kind == LeaseKind::virtualFunction;
  return (vf ? "VF '" : "PCI function '") + lease.vfName + "'";
}

std::string yesOrNo(bool value) { return value ? "yes" : "no"; }

void compare(const Lease& lease, const Claim& claim, bool managed,
             std::vector<std::string>& differences) {
  const auto say = [&](const std::string& what) {
    differences.push_back(nameOf(lease) + ": " + what);
  };
  if (claim.device != lease.vf) {
    say("the XML claims host device " + toString(claim.device) + ", leased is " +
        toString(lease.vf));
  }
  if (!claim.hasGuestAddress || claim.guestAddress != lease.guest.address) {
    say("the XML places it in the guest at " + place(claim) + ", leased is " +
        toString(lease.guest.address));
  }
  if (managed != lease.managed) {
    say("the XML says managed='" + yesOrNo(managed) + "', leased is managed='" +
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
      differences.push_back(nameOf(lease) + ": the XML has no device with the alias " + alias);
      continue;
    }
    compare(lease, *found, parsed.managedAliases.contains(alias), differences);
  }
  return differences;
}

}  // namespace vfpass::domain
