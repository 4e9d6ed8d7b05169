#pragma once

#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::apply {

/// Adds to each device in quarantine what its address has now and, if that is not the device, where
/// it is: cards move to other slots. A device that is at its address is nowhere else, even if
/// another one has the same identity. Those without an identity cost nothing.
std::vector<QuarantinedDevice> locate(std::vector<QuarantinedDevice> devices, Kernel& kernel);

/// The same for a start, which may wait for no device that its domain does not have: finds only
/// which of these leases have a card in quarantine that got into their slot since their attach.
std::vector<QuarantinedDevice> locateAmong(std::vector<QuarantinedDevice> devices,
                                           const std::vector<Lease>& leases, Tools& tools);

}  // namespace vfpass::apply
