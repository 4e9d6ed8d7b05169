#pragma once

#include <string>

#include "vfpass/plan.hpp"

namespace vfpass::report {

/// describe() of the step's action, with the present value of everything that it changes: `vlan 100
/// -> 200`. The present values are those that its rollback would set.
std::string stepText(const Step& step);

/// The lease that the step replaces; null if it makes a new one.
const Lease* earlierLeaseOf(const Step& step);

/// `rail0 of VF 1 of PF 0000:01:00.0: vlan 100 -> 200`.
std::string updateText(const Lease& earlier, const Lease& lease);

/// `0000:01:00.0, VF 0: mac 02:00:00:00:00:01, vlan 100 -> 200; VF 1: ...`.
std::string configurationText(const Step& step, const ConfigureVfs& configure);

}  // namespace vfpass::report
