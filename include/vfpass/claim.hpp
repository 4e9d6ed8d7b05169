#pragma once

#include <string>
#include <vector>

#include "vfpass/identifiers.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// A host PCI function that a domain's XML refers to (`<hostdev>`, `<interface type='hostdev'>`).
struct Claim {
  PciAddress device;
  std::string alias;  ///< empty: none
  PciAddress guestAddress;
  bool hasGuestAddress = false;

  auto operator<=>(const Claim&) const = default;
};

/// The facts that vfpass needs about every domain of the host.
struct DomainSummary {
  Uuid uuid;
  std::string name;
  bool active = false;
  bool persistent = false;
  std::vector<Claim> claims;             ///< in the persistent or the live XML
  std::vector<Claim> liveClaims;         ///< in the live XML: devices of the running domain
  std::vector<MacAddress> macAddresses;  ///< in all `<interface>` elements and in sealed metadata

  auto operator<=>(const DomainSummary&) const = default;
};

}  // namespace vfpass
