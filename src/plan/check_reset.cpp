#include "check_reset.hpp"

#include "companion_lines.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {

// VFIO falls back to a reset of the bus, and does that only when one owner has all of it
// (vfio_pci_dev_set_try_reset, drivers/vfio/pci/vfio_pci_core.c).
std::vector<Objection> checkReset(const PciFunction& function, const FunctionTerms& terms) {
  std::vector<GroupPeer> strangers;
  std::vector<std::string> addresses;
  for (const auto& peer : function.busPeers) {
    if (!terms.companions.contains(peer.address)) {
      strangers.push_back(peer);
      addresses.push_back(toString(peer.address));
    }
  }
  if (strangers.empty()) {
    return {};
  }
  return {{"PCI function " + toString(function.address) + " (" + terms.name +
               ") has no reset of its own, and its bus, which could be reset instead, is shared "
               "with " +
               join(addresses, ", ") + ": the next guest would find what this one has left",
           giveTogether(strangers, terms) +
               "choose another device (its reset_method in sysfs names its resets)"}};
}

}  // namespace vfpass::plan
