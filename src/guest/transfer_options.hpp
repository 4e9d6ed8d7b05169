#pragma once

#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "vfpass/guest/verify.hpp"

namespace vfpass::guest {

/// With which registrations each transfer is run: with relaxed ordering (true) and without. To a
/// software device the wish means nothing: nobody reorders anything there.
std::vector<bool> relaxedOrderings(RelaxedOrdering wanted, bool software);

/// What the probe is told of the transfer; the port and the sides are the caller's.
std::vector<std::string> transferOptions(const Transfer& transfer);

/// The same path with small messages, one at a time, of the plan's count at most.
Transfer latencyOf(Transfer transfer, const VerifyPlan& plan);
std::vector<std::string> latencyOptions(const Transfer& latency);

/// Faults on purpose are looked for in transfers only.
bool latencyWanted(const VerifyPlan& plan);

}  // namespace vfpass::guest
