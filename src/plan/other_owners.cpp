#include "vfpass/plan/other_owners.hpp"

#include <algorithm>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {

const NetworkPool* findPool(const std::vector<NetworkPool>& pools, const PciAddress& function,
                            std::string_view pfNetdev) {
  const auto found = std::ranges::find_if(pools, [&](const NetworkPool& pool) {
    const auto& netdevs = pool.pfNetdevs;
    return std::ranges::find(pool.devices, function) != pool.devices.end() ||
           (!pfNetdev.empty() && std::ranges::find(netdevs, pfNetdev) != netdevs.end());
  });
  return found == pools.end() ? nullptr : &*found;
}

void objectToPool(const AttachInput& input, const PciAddress& function, std::string_view pfNetdev,
                  const std::string& remedy, std::vector<Objection>& objections) {
  if (const NetworkPool* pool = findPool(input.pools, function, pfNetdev)) {
    objections.push_back(
        {toString(function) + " belongs to the pool of libvirt network " + printable(pool->network),
         remedy});
  }
}

void objectToLeases(const std::vector<Lease>& leases, const Lease& wanted,
                    const std::string& alternative, std::vector<Objection>& objections) {
  for (const auto& lease : leases) {
    if (lease.domain != wanted.domain && sameDevice(lease, wanted)) {
      objections.push_back(
          {describeDevice(lease) + " is leased to domain " + printable(lease.domainName),
           alternative + ", or `vfpass detach " + shellArgument(lease.domainName) + "`"});
    }
  }
}

void objectToClaims(const AttachInput& input, const PciAddress& address, const std::string& kind,
                    std::vector<Objection>& objections) {
  for (const auto& domain : input.domains) {
    const bool own = domain.uuid == input.domain;
    // The persistent and the live XML may both name it.
    const bool claims = std::ranges::any_of(domain.claims, [&](const auto& claim) {
      return claim.device == address && !(own && isOurAlias(claim.alias));
    });
    if (claims && own) {
      objections.push_back(
          {toString(address) + " is claimed by a hostdev of this domain that vfpass did not create",
           "remove that hostdev, or choose another " + kind});
    } else if (claims) {
      objections.push_back({toString(address) + " is claimed by domain " + printable(domain.name),
                            "choose another " + kind + ", or remove the device from that domain"});
    }
  }
}

}  // namespace vfpass::plan
