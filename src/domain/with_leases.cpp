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
  return Error("'" + lease.vfName + "' cannot be added to domain " + printable(lease.domainName) +
                   ": " + reason,
               "detach the domain's devices and attach them again");
}

// Leases of one domain name the same tree.
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
      throw conflict(lease, "no controller of its lease leads to its place");
    }
  }
}

void checkLeases(const Uuid& domain, const std::vector<Lease>& leases) {
  std::set<std::string> aliases;
  std::set<PciAddress> ports;
  for (const auto& lease : leases) {
    if (lease.domain != domain) {
      throw conflict(lease, "the lease belongs to another domain, " + toString(lease.domain));
    }
    if (!aliases.insert(deviceAlias(lease)).second || !aliases.insert(portAlias(lease)).second) {
      throw conflict(lease, "its name leads to an alias that another device has");
    }
    if (lease.guest.port) {
      ports.insert(lease.guest.port->address);
    }
  }
  checkControllers(leases, aliases);
  for (const auto& lease : leases) {
    auto leader = lease.guest.port.value_or(RootPort{}).address;
    leader.function = 0;
    // A guest looks at functions 1 to 7 of a slot only if it finds function 0.
    if (lease.guest.port && !ports.contains(leader)) {
      throw conflict(lease, "its root port shares a slot whose function 0 goes away");
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
