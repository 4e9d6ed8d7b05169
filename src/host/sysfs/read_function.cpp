#include "sysfs/read_function.hpp"

#include <algorithm>

#include "drivers/driver_override.hpp"
#include "holders/block_uses.hpp"
#include "sysfs/device_identity.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/host/reset_methods.hpp"
#include "vfpass/host/vfio_driver_match.hpp"
#include "vfpass/host/vfio_users.hpp"
#include "vfpass/host/vital_product_data.hpp"

namespace vfpass::host {
namespace {

std::uint32_t readClass(const Root& root, const PciAddress& address) {
  return static_cast<std::uint32_t>(root.readNumber(functionPath(address) + "/class").value_or(0) &
                                    0xffffffU);
}

void readIdentity(const Root& root, const std::string& path, PciFunction& function) {
  function.path = devicePath(root, function.address);
  function.vendor = readIdentifier(root, path + "/vendor");
  function.device = readIdentifier(root, path + "/device");
  function.classCode = readClass(root, function.address);
  function.serial = readSerial(root, function.address);
  function.numaNode = readNumaNode(root, path);
  function.bootVga = root.readNumber(path + "/boot_vga").value_or(0) != 0;
  function.vfCount = static_cast<unsigned>(readVfLinks(root, function.address).size());
  if (const auto pf = root.linkName(path + "/physfn")) {
    function.physicalFunction = parsePciAddress(*pf);
  }
}

void readIsolation(const Root& root, PciFunction& function) {
  function.iommuGroup = readIommuGroup(root, function.address);
  if (!function.iommuGroup) {
    return;
  }
  for (const auto& peer : readGroupPeers(root, function.address, *function.iommuGroup)) {
    function.groupPeers.push_back({peer, readClass(root, peer), readDriver(root, peer)});
  }
}

// Other functions on the same bus. None for a root bus, which cannot be reset
// (pci_parent_bus_reset).
void readBusPeers(const Root& root, PciFunction& function) {
  const bool onRootBus = std::ranges::count(function.path, '/') < 2;
  const std::string own = toString(function.address);
  const std::string bus = own.substr(0, own.rfind(':') + 1);
  for (const std::string& name : root.list("sys/bus/pci/devices", bus)) {
    const auto peer = parsePciAddress(name);
    if (!onRootBus && peer && *peer != function.address) {
      function.busPeers.push_back({*peer, readClass(root, *peer), readDriver(root, *peer)});
    }
  }
}

void readReset(const Root& root, PciFunction& function) {
  function.resetMethods = readResetMethods(root, functionPath(function.address));
  if (function.resetMethods && !resetsAlone(*function.resetMethods)) {
    readBusPeers(root, function);
  }
}

void readUse(const Root& root, PciFunction& function) {
  function.driver = readDriver(root, function.address);
  const auto override =
      readDriverOverrides(root, {function.address}, deadlines::driverOverride).front();
  function.driverOverride = override.value_or("");
  function.locked = !override && hasDriverOverride(root, function.address);
  function.netdevs = readNetdevs(root, function.address);
  // Much of the host may be below a bridge, and a bridge is refused in any case.
  if (!isBridge(function) && !function.path.empty()) {
    function.uses = readBlockUses(root, function.path);
  }
  if (isVfioDriver(function.driver)) {
    const auto user = vfioUserOf(root, function.address, readVfioUsers(root));
    function.vfioInUse = user.has_value();
    function.vfioUser = user.value_or("");
  }
}

}  // namespace

std::optional<PciFunction> readPciFunction(const Root& root, const PciAddress& address) {
  const std::string path = functionPath(address);
  if (!root.exists(path)) {
    return std::nullopt;
  }
  PciFunction function;
  function.address = address;
  readIdentity(root, path, function);
  readIsolation(root, function);
  readReset(root, function);
  readUse(root, function);
  if (!function.physicalFunction) {  // a VF is never leased as a function
    function.vfioDriver = bestVfioDriver(root, functionPath(address));
  }
  return function;
}

}  // namespace vfpass::host
