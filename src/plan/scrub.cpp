#include "scrub.hpp"

#include <map>

#include "function_steps.hpp"
#include "restore_settings.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

// nullptr if the VF no longer exists or another card is in its place.
const VirtualFunction* findVf(const Inventory& inventory, const Lease& lease) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  const bool there =
      pf != nullptr && vfOf(lease).index < pf->vfs.size() && otherDevice(lease, *pf).empty();
  return there ? &pf->vfs[vfOf(lease).index] : nullptr;
}

}  // namespace

std::vector<Step> planScrub(const std::vector<Lease>& leases, const Inventory& inventory,
                            const std::string& bootId, const std::string& reason) {
  std::vector<Step> steps;
  std::vector<Step> records;
  std::map<PciAddress, ConfigureVfs> byPf;
  for (const auto& lease : leases) {
    Lease reserved = lease;
    reserved.state = LeaseState::reserved;
    reserved.bootId = bootId;
    records.push_back({RecordLease{reserved}, {}, reason});
    if (!isVf(lease)) {
      scrubFunction(lease, inventory, steps);
      continue;
    }
    const VirtualFunction* vf = findVf(inventory, lease);
    if (vf == nullptr) {
      continue;
    }
    if (vf->driver == "vfio-pci") {
      // libvirt skips the reset of a device that is already on vfio-pci.
      steps.push_back(
          {ResetFunction{vf->address}, {}, "its next owner must not find data left by this one"});
    }
    if (const VfSettings scrubbed = settingsToScrub(lease, vf->settings);
        scrubbed != VfSettings{}) {
      byPf.try_emplace(lease.pf, ConfigureVfs{lease.pf, {}})
          .first->second.vfs.push_back({vfOf(lease).index, scrubbed, {}});
    }
  }
  for (const auto& [address, configure] : byPf) {
    steps.push_back({configure, {}, "a VF has neutral values between two owners"});
  }
  steps.insert(steps.end(), records.begin(), records.end());
  return steps;
}

}  // namespace vfpass::plan
