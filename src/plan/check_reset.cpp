#include "check_reset.hpp"

#include "companion_lines.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {

// VFIO falls back to a bus reset, but only when one owner has all devices on the bus
// (vfio_pci_dev_set_try_reset, drivers/vfio/pci/vfio_pci_core.c).
std::vector<Objection> checkReset(const PciFunction& function, const FunctionTerms& terms) {
  std::vector<GroupPeer> unlistedPeers;
  std::vector<std::string> addresses;
  for (const auto& peer : function.busPeers) {
    if (!terms.companions.contains(peer.address)) {
      unlistedPeers.push_back(peer);
      addresses.push_back(toString(peer.address));
    }
  }
  if (unlistedPeers.empty()) {
    return {};
  }
  return {{"PCI function " + toString(function.address) + " (" + terms.name +
               ") can be reset only with its bus, which it shares with " + join(addresses, ", ") +
               ": the next guest could read data left by this one",
           companionRemedy(unlistedPeers, terms) +
               "choose another device (reset_method in sysfs lists the resets of a device)"}};
}

}  // namespace vfpass::plan
