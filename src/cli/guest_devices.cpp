#include "guest_devices.hpp"

#include "guest_tree.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::cli {
namespace {

std::string domainsOf(const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  for (const Lease& lease : leases) {
    if (names.empty() || names.back() != printable(lease.domainName)) {
      names.push_back(printable(lease.domainName));
    }
  }
  return names.empty() ? "no VM holds a lease" : "leases are held by " + join(names, ", ");
}

}  // namespace

std::vector<LeasedDevice> guestDevicesOf(const std::string& vm,
                                         const report::TopologyReport& report) {
  std::vector<LeasedDevice> devices;
  for (const Lease& lease : report.leases) {
    if (lease.domainName != vm && toString(lease.domain) != vm) {
      continue;
    }
    const TopologyFunction* function = findFunction(report.topology, lease.vf);
    if (function == nullptr) {  // its VFs are made at its next start
      function = findFunction(report.topology, lease.pf);
    }
    if (function == nullptr) {
      throw Error(lease.vfName + " of " + printable(vm) + ": PF " + toString(lease.pf) +
                      " is not on this host",
                  "see `vfpass status`");
    }
    devices.push_back(
        {lease, static_cast<std::size_t>(function - report.topology.functions.data())});
  }
  if (devices.empty()) {
    throw Error(printable(vm) + " has no device of vfpass; " + domainsOf(report.leases),
                "run `vfpass attach` first", ExitCode::badInput);
  }
  return devices;
}

std::vector<report::GuestDevice> placedIn(const GuestMachine& machine,
                                          const std::vector<LeasedDevice>& devices,
                                          const Topology& guest) {
  std::vector<report::GuestDevice> placed;
  for (const LeasedDevice& device : devices) {
    const auto address = addressInGuest(machine, device.lease);
    if (!address) {
      throw Error("the XML of domain " + printable(device.lease.domainName) + " does not have " +
                      device.lease.vfName,
                  "`vfpass attach " + shellArgument(device.lease.domainName) + "` puts it in");
    }
    const TopologyFunction* function = findFunction(guest, *address);
    placed.push_back({device.function, *address, function == nullptr ? -1 : function->numaNode});
  }
  return placed;
}

}  // namespace vfpass::cli
