#include "leased_partition.hpp"

namespace vfpass::apply {
namespace {

// Before the activation, so that the recovery of a start that is killed within it knows of it.
void recordActivation(const SetPartition& action, Tools& tools) {
  tools.database.together([&] {
    for (Lease& lease : tools.database.leasesOn(action.gpus)) {
      if (nvlinkModuleOf(lease)) {
        lease.activatedPartition = true;
        tools.database.recordLease(lease);
      }
    }
  });
}

// Without the GPUs that were plugged into the running guest.
SetPartition onlyActivated(const SetPartition& action, const Tools& tools) {
  SetPartition activated{{}, {}, action.active};
  for (const Lease& lease : tools.database.leasesOn(action.gpus)) {
    const auto module = nvlinkModuleOf(lease);
    if (module && lease.activatedPartition) {
      activated.gpus.push_back(lease.device);
      activated.modules.push_back(*module);
    }
  }
  return activated;
}

}  // namespace

void setPartition(const SetPartition& action, Tools& tools) {
  if (action.active) {
    return tools.kernel.setPartition(action, [&] { recordActivation(action, tools); });
  }
  const SetPartition activated = onlyActivated(action, tools);
  if (!activated.gpus.empty()) {
    tools.kernel.setPartition(activated, [] {});
  }
}

}  // namespace vfpass::apply
