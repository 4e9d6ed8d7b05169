#include "vfpass/apply/adopt_leases.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::apply {
namespace {

bool isKnown(const std::vector<Lease>& known, const Lease& lease) {
  return std::ranges::any_of(known, [&](const Lease& each) {
    return each.domain == lease.domain && each.entry == lease.entry;
  });
}

RefusedMetadata refusal(const domain::ParsedDomain& parsed, const std::string& reason) {
  return {parsed.uuid, parsed.name, reason, false};
}

RefusedMetadata refusal(const domain::ParsedDomain& parsed, const Lease& lease,
                        const std::string& reason) {
  return refusal(parsed, "cannot rebuild lease " + lease.entry + ": " + reason);
}

// The devices that leases name, and why others of them could not be read.
struct Devices {
  Inventory inventory;
  std::map<PciAddress, std::string> unread;  ///< by PF, or by PCI function
};

void readDevice(Kernel& kernel, const Lease& lease, Inventory& inventory) {
  if (!isVf(lease)) {
    if (auto function = kernel.readFunction(lease.device)) {
      inventory.functions.push_back(std::move(*function));
    }
  } else if (findPf(inventory, lease.pf) == nullptr && kernel.readFunction(lease.pf)) {
    inventory.pfs.push_back(kernel.readPf(lease.pf));
  }
}

// Reads only the devices that the leases of one domain name: the hook has no time for more.
Devices readDevices(Kernel& kernel, const std::vector<Lease>& leases) {
  Devices devices;
  for (const auto& lease : leases) {
    try {
      readDevice(kernel, lease, devices.inventory);
    } catch (const Error& error) {
      devices.unread.emplace(lease.pf, error.what());
    }
  }
  return devices;
}

// Calls `judge` for every sealed, unknown lease with the lease and the problem with its place
// (empty: none); `judge` returns the final reason to refuse it.
template <typename Judge>
std::vector<RefusedMetadata> visitUnknown(const state::Database& database, Kernel& kernel,
                                          const SealKey& key,
                                          const std::vector<domain::ParsedDomain>& domains,
                                          Judge judge) {
  std::vector<RefusedMetadata> refused;
  for (const auto& parsed : domains) {
    if (const std::string fault = domain::sealFault(parsed, key); !fault.empty()) {
      refused.push_back(refusal(parsed, fault));
      continue;
    }
    const auto known = database.leasesOf(parsed.uuid);
    std::vector<Lease> unknown;
    std::copy_if(parsed.leases.begin(), parsed.leases.end(), std::back_inserter(unknown),
                 [&](const Lease& lease) { return !isKnown(known, lease); });
    const Devices devices = readDevices(kernel, unknown);
    for (const auto& lease : unknown) {
      const auto unread = devices.unread.find(lease.pf);
      const bool isRead = unread == devices.unread.end();
      const std::string reason = judge(
          parsed, lease,
          isRead ? plan::placeFault(devices.inventory, parsed.leases, lease) : unread->second);
      if (!reason.empty()) {
        refused.push_back(refusal(parsed, lease, reason));
        refused.back().unread = !isRead;
      }
    }
  }
  return refused;
}

}  // namespace

Adoption adoptLeases(state::Database& database, Kernel& kernel, const SealKey& key,
                     const std::vector<domain::ParsedDomain>& domains,
                     const std::vector<Uuid>& active) {
  // The leases to record, as they are now: the domain may have been renamed, and may run.
  std::vector<std::pair<const domain::ParsedDomain*, Lease>> found;
  std::set<std::pair<Uuid, std::string>> entries;
  std::vector<std::uint64_t> generations;
  Adoption adoption;
  adoption.refused = visitUnknown(
      database, kernel, key, domains,
      [&](const domain::ParsedDomain& parsed, Lease lease, const std::string& placeFault) {
        generations.push_back(lease.generation);
        // Once, although it is in its persistent and in its live XML.
        if (placeFault.empty() && entries.emplace(lease.domain, lease.entry).second) {
          const bool runs = std::ranges::find(active, parsed.uuid) != active.end();
          lease.domainName = parsed.name;
          lease.state = runs ? LeaseState::running : LeaseState::reserved;
          lease.bootId = kernel.bootId();
          found.emplace_back(&parsed, std::move(lease));
        }
        return placeFault;
      });
  if (generations.empty()) {
    return adoption;
  }
  // Record all of them or none: with half of its leases, a VM does not start.
  database.together([&] {
    for (const std::uint64_t generation : generations) {
      // This host issued the generation, so a rebuilt database must not issue it again.
      database.raiseGeneration(generation);
    }
    for (const auto& [parsed, lease] : found) {
      const std::string fault = database.adoptLease(lease);
      if (fault.empty()) {
        adoption.adopted.push_back("lease " + lease.entry + " of domain " +
                                   printable(parsed->name) + ": rebuilt from the domain's XML");
      } else {
        adoption.refused.push_back(refusal(*parsed, lease, fault));
      }
    }
  });
  return adoption;
}

std::vector<RefusedMetadata> refusedMetadata(const state::Database& database, Kernel& kernel,
                                             const SealKey& key,
                                             const std::vector<domain::ParsedDomain>& domains) {
  return visitUnknown(database, kernel, key, domains,
                      [&](const domain::ParsedDomain& /*parsed*/, const Lease& lease,
                          const std::string& placeFault) {
                        return placeFault.empty() ? database.adoptionFault(lease) : placeFault;
                      });
}

}  // namespace vfpass::apply
