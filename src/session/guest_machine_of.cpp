#include "vfpass/session/guest_machine_of.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/guest_machine.hpp"
#include "vfpass/error.hpp"
#include "vfpass/topology/device_matrix.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::session {

GuestMachine guestMachineOf(Session& session, const std::string& vm,
                            const std::vector<Lease>& leases) {
  const auto domain = session.hypervisor().findDomain(vm);
  if (!domain) {
    throw Error("libvirt has no domain " + printable(vm),
                "run `virsh list --all` to list the domains", ExitCode::badInput);
  }
  std::vector<Lease> own;
  std::copy_if(leases.begin(), leases.end(), std::back_inserter(own),
               [&](const Lease& lease) { return lease.domain == domain->uuid; });
  return topology::withPfs(
      domain::readGuestMachine(domain->active ? domain->liveXml : domain->persistentXml), own);
}

std::optional<PciAddress> addressInGuest(const GuestMachine& machine, const Lease& lease) {
  const auto device =
      std::find_if(machine.passed.begin(), machine.passed.end(),
                   [&lease](const PassedDevice& each) { return each.name == lease.entry; });
  return device == machine.passed.end() ? std::nullopt
                                        : topology::guestAddress(machine, device->place);
}

}  // namespace vfpass::session
