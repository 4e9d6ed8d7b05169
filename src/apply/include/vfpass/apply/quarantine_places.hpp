#pragma once

#include <vector>

#include "vfpass/hand_over.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::apply {

/// Adds to each device in quarantine what its address has now and, if that is not the device, where
/// it is: cards move to other slots. A device that is at its address is nowhere else, even if
/// another one has the same identity. Those without an identity cost nothing.
std::vector<QuarantinedDevice> locate(std::vector<QuarantinedDevice> devices, Kernel& kernel);

}  // namespace vfpass::apply
