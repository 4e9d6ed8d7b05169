#include "vfpass/session/host_reading.hpp"

#include <algorithm>
#include <iterator>

#include "vfpass/inventory/read_topology.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::session {
namespace {

// A driver that tries to revive a dead card holds its devlink instance for minutes. Such a PF has a
// fault, which refuses the VMs that use it; commands on others must not wait for it.
bool answersDevlink(const PhysicalFunction& pf) {
  return pf.driver == "mlx5_core" && !faultOfPort(portFactsOf(pf));
}

HostReading readHost(Session& session, Inventory inventory, const std::vector<PciAddress>& pfs) {
  session.addHolders(inventory, pfs);
  for (PhysicalFunction& pf : inventory.pfs) {
    if (answersDevlink(pf) && std::ranges::find(pfs, pf.address) != pfs.end()) {
      pf.eswitchMode = session.kernel().readPfSettings(pf.address).eswitchMode;
    }
  }
  return {std::move(inventory), inventory::readTopology(session.root(), host::Serials::skip),
          session.hypervisor().versions()};
}

}  // namespace

HostReading readHostFor(Session& session, const Subject& subject,
                        const std::vector<Lease>& leases) {
  const auto own = leasesOf(leases, subject.domain.uuid);
  Inventory inventory = session.inventory(plan::namedFunctions(own, subject.mapping.functions), {});
  const auto pfs = pfsOf(subject, inventory, leases);
  session.addSerials(inventory, pfs);  // leases record them
  return readHost(session, std::move(inventory), pfs);
}

HostReading readHostForAll(Session& session, const std::vector<Lease>& leases) {
  std::vector<MappedFunction> gpus;
  for (const Mapping& mapping : session.configuration().mappings) {
    gpus.insert(gpus.end(), mapping.functions.begin(), mapping.functions.end());
  }
  Inventory inventory = session.inventory(plan::namedFunctions(leases, gpus), pfsOf(leases));
  std::vector<PciAddress> pfs;
  std::transform(inventory.pfs.begin(), inventory.pfs.end(), std::back_inserter(pfs),
                 [](const PhysicalFunction& pf) { return pf.address; });
  return readHost(session, std::move(inventory), pfs);
}

}  // namespace vfpass::session
