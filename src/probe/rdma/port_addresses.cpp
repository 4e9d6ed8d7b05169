#include "rdma/port_addresses.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

void addOnce(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::ranges::find(names, name) == names.end()) {
    names.push_back(name);
  }
}

}  // namespace

std::vector<std::string> netdevsOf(const SysfsReader& sysfs, const RdmaDevice& device,
                                   const RdmaPort& port) {
  std::vector<std::string> names;
  if (port.ethernet()) {
    for (const GidEntry& gid : port.gids) {
      addOnce(names, gid.netdev);
    }
    return names;
  }
  for (const std::string& name :
       sysfs.names("/sys/class/infiniband/" + device.name + "/device/net")) {
    // Interfaces of one function with several ports are numbered from 0.
    const auto number = parseNumber(sysfs.textOrEmpty("/sys/class/net/" + name + "/dev_port"));
    if (!number || static_cast<int>(*number) + 1 == port.number) {
      addOnce(names, name);
    }
  }
  return names;
}

std::vector<IpAddress> portAddresses(const SysfsReader& sysfs, const std::string& device,
                                     int port) {
  for (const RdmaDevice& each : readRdmaDevices(sysfs)) {
    const auto found = std::ranges::find(each.ports, port, &RdmaPort::number);
    if (each.name == device && found != each.ports.end()) {
      return addressesOf(netdevsOf(sysfs, each, *found));
    }
  }
  return {};
}

}  // namespace vfpass::probe
