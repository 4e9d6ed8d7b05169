#include <algorithm>
#include <set>

#include "document.hpp"
#include "guest_ports.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"
#include "with_ours.hpp"
#include "without_ours.hpp"

namespace vfpass::domain {
namespace {

Error conflict(const Lease& lease, const std::string& reason) {
  return Error(
      "domain " + printable(lease.domainName) + ": cannot add '" + lease.entry + "': " + reason,
      "detach the domain's devices, then attach them again");
}

// All leases of a domain name the same tree.
void checkControllers(const std::vector<Lease>& leases, std::set<std::string> aliases) {
  for (const GuestController& controller : controllersOf(leases)) {
    if (!aliases.insert(controllerAlias(controller)).second) {
      throw conflict(leases.front(), "controller " + std::to_string(controller.index) +
                                         " of the mirrored tree is claimed twice");
    }
  }
  for (const auto& lease : leases) {
    const auto& own = lease.guest.controllers;
    const bool reached =
        std::any_of(own.begin(), own.end(), [&lease](const GuestController& controller) {
          return controller.index == lease.guest.address.bus;
        });
    if (!own.empty() && !reached) {
      throw conflict(lease, "its lease names no controller for its guest bus");
    }
  }
}

void checkLeases(const Uuid& domain, const std::vector<Lease>& leases) {
  std::set<std::string> aliases;
  std::set<PciAddress> ports;
  for (const auto& lease : leases) {
    if (lease.domain != domain) {
      throw conflict(lease, "the lease belongs to another domain: " + toString(lease.domain));
    }
    if (!aliases.insert(deviceAlias(lease)).second || !aliases.insert(portAlias(lease)).second) {
      throw conflict(lease, "another device has the same alias");
    }
    if (lease.guest.port) {
      ports.insert(lease.guest.port->address);
    }
  }
  checkControllers(leases, aliases);
  for (const auto& lease : leases) {
    auto leader = lease.guest.port.value_or(RootPort{}).address;
    leader.function = 0;
    // A guest scans functions 1 to 7 of a slot only if function 0 exists.
    if (lease.guest.port && !ports.contains(leader)) {
      throw conflict(lease, "its root port shares a slot that would lose its function 0");
    }
  }
}

}  // namespace

std::string withLeases(std::string_view xml, const std::vector<Lease>& leases,
                       const Templates& templates, const SealKey& key) {
  checkLeases(domainUuid(Document(xml)), leases);
  const auto bare = withoutOurs(xml, leases);
  return leases.empty() ? bare : withOurs(bare, leases, templates, key);
}

}  // namespace vfpass::domain
