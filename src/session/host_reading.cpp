#include "vfpass/session/host_reading.hpp"

#include <algorithm>
#include <iterator>

#include "vfpass/inventory/read_topology.hpp"
#include "vfpass/plan/check_device.hpp"

namespace vfpass::session {
namespace {

HostReading readHost(Session& session, Inventory inventory, const std::vector<PciAddress>& pfs) {
  session.addHolders(inventory, pfs);
  for (PhysicalFunction& pf : inventory.pfs) {
    if (pf.driver == "mlx5_core" && std::ranges::find(pfs, pf.address) != pfs.end()) {
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
