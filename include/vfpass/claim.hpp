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

/// What vfpass wants to know of any domain of the host.
struct DomainSummary {
  Uuid uuid;
  std::string name;
  bool active = false;
  bool persistent = false;
  std::vector<Claim> claims;             ///< of the persistent and of the live XML together
  std::vector<Claim> liveClaims;         ///< of the live XML alone: what it runs with
  std::vector<MacAddress> macAddresses;  ///< of all `<interface>` elements and of sealed metadata

  auto operator<=>(const DomainSummary&) const = default;
};

}  // namespace vfpass
