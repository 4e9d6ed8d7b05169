#pragma once

#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// The variants of each transfer: with relaxed ordering (true), without (false). `automatic` leaves
/// out relaxed ordering for a software device, which never reorders.
std::vector<bool> relaxedOrderings(RelaxedOrdering wanted, bool software);

/// The probe's options for a transfer, without those for the port and the roles.
std::vector<std::string> transferOptions(const Transfer& transfer);

/// The same path with small messages, one at a time, at most as many as the plan has.
Transfer latencyOf(Transfer transfer, const VerifyPlan& plan);
std::vector<std::string> latencyOptions(const Transfer& latency);

/// False with additional probe options: injected faults are for transfers only.
bool latencyWanted(const VerifyPlan& plan);

}  // namespace vfpass::verify
