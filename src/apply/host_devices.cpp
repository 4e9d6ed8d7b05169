#include "vfpass/apply/host_devices.hpp"

#include <algorithm>

#include "perform.hpp"

namespace vfpass::apply {
namespace {

using state::JournaledStep;
using state::StepStatus;

bool changes(const Action& action, const Lease& lease) {
  if (const auto* configure = std::get_if<ConfigureVfs>(&action)) {
    return isVf(lease) && configure->pf == lease.pf &&
           std::ranges::find(configure->vfs, vfOf(lease).index, &VfChange::index) !=
               configure->vfs.end();
  }
  const auto* bind = std::get_if<BindDriver>(&action);
  const auto* reset = std::get_if<ResetFunction>(&action);
  return (bind != nullptr && bind->function == lease.vf) ||
         (reset != nullptr && reset->function == lease.vf);
}

bool leavesWithHost(const JournaledStep& step, PlanKind kind, const Lease& lease) {
  const bool undone = step.status == StepStatus::undone;
  if (const auto* plug = std::get_if<PlugDevice>(&step.step.action)) {
    return plug->lease.entry == lease.entry && plug->lease.generation == lease.generation &&
           (undone || step.status == StepStatus::planned);
  }
  const bool givenBack = kind == PlanKind::attach ? undone : step.status != StepStatus::planned;
  return givenBack && changes(step.step.action, lease);
}

}  // namespace

bool isHosts(const Lease& lease, const std::vector<state::Operation>& open) {
  return std::ranges::any_of(open, [&](const state::Operation& operation) {
    const bool movesDevices =
        operation.kind == PlanKind::attach || operation.kind == PlanKind::detach;
    return movesDevices && operation.domain == lease.domain &&
           std::ranges::any_of(operation.steps, [&](const JournaledStep& step) {
             return leavesWithHost(step, operation.kind, lease);
           });
  });
}

}  // namespace vfpass::apply
