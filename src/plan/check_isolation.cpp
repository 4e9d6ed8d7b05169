#include "check_isolation.hpp"

#include "companion_lines.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

// VFIO considers a group with such a bridge viable (vfio_dev_viable, pcieport): its driver grants
// no device additional access, and a guest cannot access the bridge.
bool isHarmless(const GroupPeer& peer) {
  constexpr std::uint32_t pciBridge = 0x0604;
  return peer.classCode >> 8U == pciBridge && (peer.driver.empty() || peer.driver == "pcieport");
}

std::vector<GroupPeer> unlistedPeers(const PciFunction& function, const FunctionTerms& terms) {
  std::vector<GroupPeer> found;
  for (const auto& peer : function.groupPeers) {
    if (!isHarmless(peer) && !terms.companions.contains(peer.address)) {
      found.push_back(peer);
    }
  }
  return found;
}

void checkGroup(const PciFunction& function, const FunctionTerms& terms,
                std::vector<Objection>& objections) {
  const auto peers = unlistedPeers(function, terms);
  if (peers.empty() || terms.allow.contains(Allowance::sharedIommuGroup)) {
    return;
  }
  std::vector<std::string> addresses;
  addresses.reserve(peers.size());
  for (const auto& peer : peers) {
    addresses.push_back(toString(peer.address));
  }
  objections.push_back(
      {"PCI function " + toString(function.address) + " shares IOMMU group " +
           std::to_string(*function.iommuGroup) + " with " + join(addresses, ", ") +
           ": the guest could reach those devices without IOMMU protection",
       companionRemedy(peers, terms) +
           "enable ACS on the bridges above (pci=config_acs=), or accept the risk with `allow: "
           "[shared-iommu-group]`"});
}

}  // namespace

std::vector<Objection> checkIsolation(const PciFunction& function, const FunctionTerms& terms) {
  std::vector<Objection> objections;
  if (function.iommuGroup) {
    checkGroup(function, terms, objections);
  } else {
    objections.push_back(
        {"PCI function " + toString(function.address) +
             " has no IOMMU group: the IOMMU is off, and a guest's DMA could reach all host memory",
         "enable VT-d or AMD-Vi in firmware and boot with intel_iommu=on"});
  }
  if (terms.unsafeInterrupts && !terms.allow.contains(Allowance::unsafeInterrupts)) {
    objections.push_back(
        {"PCI function " + toString(function.address) +
             " cannot be isolated: vfio_iommu_type1 has allow_unsafe_interrupts=Y, so a guest "
             "could inject interrupts",
         "set allow_unsafe_interrupts to N, or accept the risk with `allow: [unsafe-interrupts]`"});
  }
  return objections;
}

}  // namespace vfpass::plan
