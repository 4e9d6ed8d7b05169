#include "vfpass/plan/owner_objections.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/domain_facts.hpp"

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

namespace {

bool names(const DomainSummary& domain, const PciAddress& vf) {
  return std::ranges::find(domain.claims, vf, &Claim::device) != domain.claims.end();
}

bool hasLease(const std::vector<Lease>& leases, const DomainSummary& domain, const PciAddress& vf) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    return lease.device == vf && lease.domain == domain.uuid;
  });
}

}  // namespace

std::vector<DeviceUser> definedUsers(const PhysicalFunction& pf,
                                     const std::vector<DomainSummary>& domains,
                                     const std::vector<NetworkPool>& pools,
                                     const std::vector<Lease>& leases) {
  using Kind = DeviceUser::Kind;
  std::vector<DeviceUser> users;
  for (const VirtualFunction& vf : pf.vfs) {
    for (const DomainSummary& domain : domains) {
      if (names(domain, vf.address) && !hasLease(leases, domain, vf.address)) {
        users.push_back({vf.address, Kind::domain, domain.name});
      }
    }
    if (const NetworkPool* pool = findPool(pools, vf.address, pf.netdev())) {
      // libvirt lists all VFs beside <pf> while the network is active (networkCreateInterfacePool,
      // virNetworkDefFormatBuf without VIR_NETWORK_XML_INACTIVE).
      const auto& netdevs = pool->pfNetdevs;
      const bool anyOfPf = std::ranges::find(netdevs, pf.netdev()) != netdevs.end();
      users.push_back({vf.address, anyOfPf ? Kind::pfsNetwork : Kind::network, pool->network});
    }
  }
  return users;
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

// Otherwise the stop of one VM could deactivate the partition of the other.
void objectToModules(const std::vector<Lease>& leases, const Lease& wanted,
                     std::vector<Objection>& objections) {
  const auto module = nvlinkModuleOf(wanted);
  for (const auto& lease : leases) {
    if (module && nvlinkModuleOf(lease) == module && lease.domain != wanted.domain) {
      objections.push_back({wanted.entry + ": the module ID " + std::to_string(*module) +
                                " is that of " + describeDevice(lease) +
                                ", which is leased to domain " + printable(lease.domainName),
                            "correct `nvlink-module` in the mappings of both VMs, then run `vfpass "
                            "attach` for them"});
    }
  }
}

void objectToClaims(const AttachInput& input, const PciAddress& address, const std::string& kind,
                    bool adopt, std::vector<Objection>& objections) {
  for (const auto& domain : input.domains) {
    const bool own = domain.uuid == input.domain;
    // The persistent and the live XML may both name it.
    const auto claim = std::ranges::find_if(domain.claims, [&](const auto& each) {
      const bool ours = isOurAlias(each.alias) || (adopt && each.alias != argumentsAlias);
      return each.device == address && !(own && ours);
    });
    if (claim == domain.claims.end()) {
      continue;
    }
    if (own) {
      const bool byArguments = claim->alias == argumentsAlias;
      const std::string what = byArguments ? "-device" : "hostdev";
      objections.push_back(
          {toString(address) + " is claimed by a " + what + " of this domain" +
               (byArguments ? " (<qemu:commandline>)" : "") + " that vfpass did not create",
           "remove that " + what + ", or choose another " + kind +
               (byArguments ? ""
                            : "; to take it over as it is, set `adopt: true` for "
                              "this entry, or let `vfpass import " +
                                  shellArgument(input.domainName) + "` write the mapping")});
    } else {
      objections.push_back({toString(address) + " is claimed by domain " + printable(domain.name),
                            "choose another " + kind + ", or remove the device from that domain"});
    }
  }
}

}  // namespace vfpass::plan
