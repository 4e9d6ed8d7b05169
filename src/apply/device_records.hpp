#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Resets functions in parallel and records how that ended for those that are leased. A function
/// whose reset fails goes into quarantine before the error is thrown, so that neither
/// `recover --abandon` nor the end of its lease gives it to another domain.
void resetDevices(const std::vector<ResetFunction>& resets, Tools& tools);

/// By device.
using NewUses = std::map<PciAddress, DeviceUse>;

/// The uses that begin with the leases that the plan records, read from the host: call it before
/// the plan's first step, and outside of a transaction, which keeps the database locked.
NewUses usesToBegin(const Plan& plan, Tools& tools);

/// Records a lease, and from when on errors of its device are the domain's: takes that out of
/// `uses`. Without it there, reads it if the device's last use was not by this domain.
void recordLease(const Lease& lease, NewUses& uses, Tools& tools);

/// Ends leases. A device that leaves its domain with it gets a sealed record; one with errors of
/// its hardware since the lease began goes into quarantine, in the same transaction.
void dropLeases(const std::vector<DropLease>& drops, Tools& tools);

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

/// Kernel::setPartition() for the leases of these GPUs: records in them that their partition is
/// activated, and deactivates nothing else, such as a partition that was active before the start.
void setPartition(const SetPartition& action, Tools& tools);

}  // namespace vfpass::apply
