#include "vfpass/plan/lease_device.hpp"

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

std::string otherCard(const Lease& lease, const PciAddress& address, const std::string& path,
                      const std::string& serial) {
  if (!lease.pfSerial.empty() && !serial.empty() && lease.pfSerial != serial) {
    return "the card at " + toString(address) + " has serial number " + printable(serial) +
           ", the leased card has " + printable(lease.pfSerial);
  }
  if (!lease.pfPath.empty() && lease.pfPath != path) {
    return "the device at " + toString(address) + " has PCI path " + printable(path) +
           ", the leased device had " + printable(lease.pfPath);
  }
  return {};
}

}  // namespace

std::string otherDevice(const Lease& lease, const PhysicalFunction& pf) {
  std::string card = otherCard(lease, pf.address, pf.path, pf.serial);
  if (!card.empty() || vfOf(lease).index >= pf.vfs.size()) {
    return card;
  }
  const PciAddress& vf = pf.vfs[vfOf(lease).index].address;
  return vf == lease.vf
             ? ""
             : "VF " + std::to_string(vfOf(lease).index) + " of PF " + toString(pf.address) +
                   " is at " + toString(vf) + ", the leased VF was at " + toString(lease.vf);
}

std::string otherDevice(const Lease& lease, const PciFunction& function) {
  return otherCard(lease, function.address, function.path, function.serial);
}

std::string unplugForeign(const std::string& domainName, const Lease& lease) {
  return "unplug it (`virsh detach-device-alias " + shellArgument(domainName) + " " +
         deviceAlias(lease) + " --live`), then attach again";
}

}  // namespace vfpass::plan
