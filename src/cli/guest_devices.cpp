#include "guest_devices.hpp"

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

std::vector<report::GuestDevice> guestDevicesOf(
    const std::string& vm, const report::TopologyReport& report,
    const std::function<PciAddress(const Lease&)>& addressOf) {
  std::vector<report::GuestDevice> devices;
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
        {static_cast<std::size_t>(function - report.topology.functions.data()), addressOf(lease)});
  }
  if (devices.empty()) {
    throw Error(printable(vm) + " has no device of vfpass; " + domainsOf(report.leases),
                "run `vfpass attach` first", ExitCode::badInput);
  }
  return devices;
}

}  // namespace vfpass::cli
