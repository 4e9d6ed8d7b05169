#include "describe_desired_setup.hpp"

#include <algorithm>
#include <sstream>

#include "guest_devices.hpp"
#include "host_topology.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::commands {
namespace {

constexpr std::string_view noGpu = "no topology file for NCCL: the VM has no GPU (`gpus:`)";

const Lease* findLease(const std::vector<Lease>& leases, const std::string& name) {
  const auto found = std::ranges::find(leases, name, &Lease::entry);
  return found == leases.end() ? nullptr : &*found;
}

// Firmware numbers the buses behind bridges in its own order, and a hot-plugged bridge gets one of
// the remaining numbers, so the address is read from the guest: the function at the end of the
// path.
std::optional<PciAddress> placeInGuest(const GuestMachine& machine, const Lease& lease,
                                       const setup::SetupView& view) {
  return functionAt(view, guestPathOf(machine, lease.entry));
}

bool holdsGpu(const std::vector<Lease>& leases, const Topology& topology) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    const Device* function = findFunction(topology, lease.device);
    return function != nullptr && function->role == FunctionRole::gpu;
  });
}

// Empty, with a note, if no topology file is possible.
std::string ncclTopology(Session& session, const GuestMachine& machine,
                         const std::vector<Lease>& leases, const setup::SetupView& view,
                         std::vector<std::string>& notes) {
  if (std::ranges::all_of(leases, isVf)) {
    notes.emplace_back(noGpu);
    return "";
  }
  report::TopologyReport host = topologyReport(session, false);
  host.leases = leases;
  if (!holdsGpu(leases, host.topology)) {
    notes.emplace_back("no topology file for NCCL: none of the VM's PCI functions is a GPU");
    return "";
  }
  try {
    const std::string domain = toString(leases.front().domain);
    const auto leased = guestDevicesOf(domain, host);
    auto devices = placedIn(machine, leased, topology::guestTopology(machine, host.topology));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto address = placeInGuest(machine, leased[i].lease, view);
      if (!address) {
        throw Error("the guest has no device at the address of " + leased[i].lease.entry);
      }
      devices[i].address = *address;
    }
    std::ostringstream text;
    report::writeGuestNcclTopology(text, host.topology, devices);
    return text.str();
  } catch (const Error& error) {
    notes.push_back(std::string("no topology file for NCCL: ") + error.what());
    return "";
  }
}

}  // namespace

setup::DesiredSetup desiredSetup(const Mapping& mapping, const DomainDescription& domain,
                                 const std::vector<Lease>& leases) {
  setup::DesiredSetup setup;
  setup.domain = domain.uuid;
  setup.nccl = mapping.nccl;
  setup.peerMemory = true;
  setup.nvlinkDisabled = mapping.nvlink == NvlinkMode::disabled;
  for (const MappedVf& vf : mapping.vfs) {
    const Lease* lease = findLease(leases, vf.name);
    if (lease == nullptr) {
      setup.notes.push_back(
          vf.name +
          ": the running guest does not have this device; run `vfpass attach` and "
          "restart the VM");
      continue;
    }
    const std::string address = guestIdentityOf(*lease);
    if (address.empty()) {
      setup.notes.push_back(vf.name + ": its lease records no MAC or GUID");
      continue;
    }
    setup.ports.push_back({vf.name, vfOf(*lease).infiniband, address, "",
                           vfOf(*lease).teamingWith.has_value(), vf.guest});
  }
  return setup;
}

void completeSetup(Session& session, const std::vector<Lease>& leases, const setup::SetupView& view,
                   setup::DesiredSetup& setup) {
  if (leases.empty()) {
    setup.notes.emplace_back(noGpu);
    return;
  }
  const GuestMachine machine = guestMachineOf(session, toString(leases.front().domain), leases);
  for (setup::WantedPort& port : setup.ports) {
    const Lease* lease = findLease(leases, port.entry);
    const auto place = lease == nullptr ? std::nullopt : placeInGuest(machine, *lease, view);
    port.function = place ? toString(*place) : "";
  }
  setup.ncclTopology = ncclTopology(session, machine, leases, view, setup.notes);
}

}  // namespace vfpass::commands
