#pragma once

#include <cstddef>
#include <string>
#include <vector>

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

/// Steps of a plan that read alike: one, or several of the same kind with the same reason. The
/// texts are printable.
struct StepGroup {
  std::vector<std::size_t> numbers;  ///< ascending, from 1
  std::string text;                  ///< `bind 2 devices to vfio-pci: 0000:01:00.1, 0000:01:00.2`
  std::vector<std::string> items;    ///< of several steps that do not fit into one line
  const Step* first = nullptr;       ///< the others have its reason
};

/// In the order of the steps. Only steps between which no other kind of step lies share a group, so
/// that a reader still sees what comes first.
std::vector<StepGroup> groupSteps(const std::vector<Step>& steps);

/// `1-4`, `11, 13-14`.
std::string rangesOf(const std::vector<std::size_t>& numbers);

}  // namespace vfpass::report
