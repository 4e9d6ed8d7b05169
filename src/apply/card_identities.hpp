#pragma once

#include <map>
#include <string>

#include "vfpass/hand_over.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::apply {

/// Kernel::identityOf() for leases. Reads each card once: one that does not answer costs the whole
/// time that a read may take.
class CardIdentities {
 public:
  explicit CardIdentities(Kernel& kernel) : kernel_(kernel) {}

  /// Of the PF, or of a whole function.
  std::string ofCard(const Lease& lease) {
    const auto [found, isNew] = known_.try_emplace(lease.pf);
    if (isNew) {
      found->second = kernel_.identityOf(lease.pf, lease.pfSerial);
    }
    return found->second;
  }

  /// Of the leased device; a VF need not exist yet.
  std::string ofDevice(const Lease& lease) {
    const std::string card = ofCard(lease);
    const auto vf = vfIndexOf(lease);
    return vf ? identityOfVf(card, *vf) : card;
  }

 private:
  Kernel& kernel_;
  std::map<PciAddress, std::string> known_;
};

}  // namespace vfpass::apply
