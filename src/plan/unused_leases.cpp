#include "vfpass/plan/unused_leases.hpp"

#include <algorithm>

#include "device_steps.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {

std::vector<Lease> findGarbage(const std::vector<Lease>& leases, const DomainUse& use) {
  std::vector<Lease> garbage;
  std::ranges::copy_if(leases, std::back_inserter(garbage), [&](const Lease& lease) {
    const bool plugged = use.active && (use.pluggedUnknown || use.plugged.contains(lease.entry));
    const bool configured =
        lease.persistent && (use.configuredUnknown || use.configured.contains(lease.entry));
    const bool awaited = !use.exists && use.mapped && lease.persistent;
    return !awaited && !plugged && !configured;
  });
  return garbage;
}

namespace {

std::string driverText(const std::string& driver) {
  return driver.empty() ? "no driver" : "driver " + printable(driver);
}

void compareDriver(const Lease& lease, const Device& device,
                   std::vector<std::string>& differences) {
  if (device.driver != lease.original.driver) {
    differences.push_back("it has " + driverText(device.driver) + " instead of " +
                          driverText(lease.original.driver));
  }
  if (device.locked) {
    differences.push_back("driver_override cannot be read: the kernel holds the device's lock");
  } else if (device.driverOverride != lease.original.driverOverride) {
    differences.push_back("driver_override is '" + printable(device.driverOverride) +
                          "' instead of '" + printable(lease.original.driverOverride) + "'");
  }
}

// mlx5_core stays bound to a VF whose netdev it could not make, and only logs the reason.
void compareNetdev(const Lease& lease, const VirtualFunction& vf,
                   std::vector<std::string>& differences) {
  if (!vfOf(lease).infiniband && vf.driver == "mlx5_core" && vf.netdevs.empty()) {
    differences.push_back("driver mlx5_core has made no netdev for it (see `journalctl -k --grep " +
                          toString(vf.address) + "`)");
  }
}

// A VF's own driver gives a VF without an assigned MAC a random one when it binds, and a PF driver
// such as igb reports it in its VF table.
bool hasRandomMac(const VfSettings& wanted, const VirtualFunction& vf) {
  const bool none = wanted.mac && wanted.mac->isZero();
  return none && !vf.driver.empty() && !isVfioDriver(vf.driver) && vf.settings.mac &&
         (vf.settings.mac->bytes[0] & 0x03U) == 0x02U;
}

void compareSettings(const Lease& lease, const VirtualFunction& vf,
                     std::vector<std::string>& differences) {
  VfSettings wanted = settingsToRestore(lease);
  if (hasRandomMac(wanted, vf)) {
    wanted.mac.reset();
  }
  for (const Attribute attribute : differingAttributes(wanted, vf.settings)) {
    const std::string name(toString(attribute));
    const bool readable = only(vf.settings, {attribute}) != VfSettings{};
    differences.push_back(readable ? name + " is " + describe(vf.settings, attribute) +
                                         " instead of " + describe(wanted, attribute)
                                   : name + " cannot be read back");
  }
}

std::vector<std::string> differencesOfVf(const Lease& lease, const Inventory& inventory) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  if (pf == nullptr) {
    return {"its PF no longer exists"};
  }
  if (const std::string other = otherDevice(lease, *pf); !other.empty()) {
    return {other};
  }
  if (vfOf(lease).index >= pf->vfs.size()) {
    return lease.original.created ? std::vector<std::string>{}
                                  : std::vector<std::string>{"the VF no longer exists"};
  }
  std::vector<std::string> differences;
  const VirtualFunction& vf = pf->vfs[vfOf(lease).index];
  if (!lease.managed) {
    compareDriver(lease, vf, differences);
    compareNetdev(lease, vf, differences);
  }
  compareSettings(lease, vf, differences);
  return differences;
}

std::vector<std::string> differencesOfFunction(const Lease& lease, const Inventory& inventory) {
  const Device* function = findFunction(inventory, lease.device);
  if (function == nullptr) {
    return {"the function no longer exists"};
  }
  if (const std::string other = otherDevice(lease, *function); !other.empty()) {
    return {other};
  }
  std::vector<std::string> differences;
  if (!lease.managed) {  // libvirt binds it, and lease.original may be from a run of the guest
    compareDriver(lease, *function, differences);
  }
  return differences;
}

}  // namespace

std::vector<std::string> findUnrestored(const std::vector<Lease>& ended,
                                        const Inventory& inventory) {
  std::vector<std::string> lines;
  for (const auto& lease : ended) {
    const auto differences =
        isVf(lease) ? differencesOfVf(lease, inventory) : differencesOfFunction(lease, inventory);
    if (!differences.empty()) {
      lines.push_back(lease.entry + " (" + toString(lease.device) +
                      ") is not restored: " + join(differences, "; "));
    }
  }
  return lines;
}

}  // namespace vfpass::plan
