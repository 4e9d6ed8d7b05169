#include "vfpass/session/guest_devices.hpp"

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/session/guest_machine_of.hpp"

namespace vfpass::session {
namespace {

std::string domainsOf(const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  for (const Lease& lease : leases) {
    if (names.empty() || names.back() != printable(lease.domainName)) {
      names.push_back(printable(lease.domainName));
    }
  }
  return names.empty() ? "no VM has a lease" : "VMs with leases: " + join(names, ", ");
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
    if (function == nullptr) {  // a VF that the VM's next start creates
      function = findFunction(report.topology, lease.pf);
    }
    if (function == nullptr) {
      throw Error(lease.entry + " of " + printable(vm) + ": PF " + toString(lease.pf) +
                      " is not on this host",
                  "run `vfpass status` for the lease");
    }
    devices.push_back(
        {lease, static_cast<std::size_t>(function - report.topology.functions.data())});
  }
  if (devices.empty()) {
    throw Error("VM " + printable(vm) + " has no leased devices; " + domainsOf(report.leases),
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
      throw Error("domain " + printable(device.lease.domainName) + ": " + device.lease.entry +
                      " is missing from the domain XML",
                  "run `vfpass attach " + shellArgument(device.lease.domainName) + "`");
    }
    const TopologyFunction* function = findFunction(guest, *address);
    placed.push_back({device.function, *address, function == nullptr ? -1 : function->numaNode});
  }
  return placed;
}

}  // namespace vfpass::session
