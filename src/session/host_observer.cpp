#include "vfpass/session/host_observer.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/guest_machine.hpp"
#include "vfpass/host/vfio_users.hpp"
#include "vfpass/inventory/read_topology.hpp"
#include "vfpass/session/leased_gpus.hpp"
#include "vfpass/session/subject.hpp"

namespace vfpass::session {
namespace {

unsigned portRateOf(const TopologyFunction& pf) {
  unsigned rate = 0;
  for (const auto& device : pf.rdma) {
    for (const auto& port : device.ports) {
      rate = std::max(rate, port.rate);
    }
  }
  return rate;
}

// libvirt starts QEMU with `-uuid UUID`.
bool isOfDomain(const host::VfioHolder& holder, const Uuid& domain) {
  const auto& arguments = holder.arguments;
  const auto option = std::ranges::find(arguments, "-uuid");
  return option != arguments.end() && option + 1 != arguments.end() &&
         *(option + 1) == toString(domain);
}

std::vector<PciAddress> claimsOf(const DomainDescription& domain) {
  std::vector<PciAddress> devices;
  for (const auto& claim : domain::parseDomain(domain.liveXml).claims) {
    devices.push_back(claim.device);
  }
  return devices;
}

}  // namespace

HostObserver::HostObserver(Session& session, const DomainDescription& domain,
                           std::map<std::string, unsigned> mtus)
    : session_(session),
      domain_(domain.uuid),
      claims_(claimsOf(domain)),
      mtus_(std::move(mtus)),
      machine_(domain::readGuestMachine(domain.liveXml)),
      topology_(inventory::readTopology(session.root(), host::Serials::skip)) {
  gpus_ = leasedGpus(leasesOf(session.readLeases(), domain.uuid), machine_, topology_);
}

verify::HostSide HostObserver::of(const Lease& lease) const {
  verify::HostSide side;
  side.hold = holdOf(lease);
  side.guestPath = guestPathOf(machine_, lease.entry);
  if (const auto wanted = mtus_.find(lease.entry); wanted != mtus_.end()) {
    side.guestMtu = wanted->second;
  }
  if (const TopologyFunction* vf = findFunction(topology_, lease.vf); vf != nullptr) {
    side.vendor = vf->vendor;
    side.device = vf->device;
  }
  const TopologyFunction* pf = findFunction(topology_, lease.pf);
  if (pf != nullptr) {
    const auto index = static_cast<std::size_t>(pf - topology_.functions.data());
    side.link = narrowestLink(topology_, index, false);
    side.portRate = portRateOf(*pf);
  }
  return side;
}

verify::DeviceHold HostObserver::holdOf(const Lease& lease) const {
  verify::DeviceHold hold;
  hold.inLiveXml = std::ranges::find(claims_, lease.vf) != claims_.end();
  const auto function = session_.kernel().readFunction(lease.vf);
  hold.driver = function ? function->driver : std::string();
  for (const auto& holder : host::vfioHolders(session_.root(), lease.vf)) {
    const bool ours = isOfDomain(holder, domain_);
    if (ours || hold.holder.empty()) {
      hold.holder = "process " + holder.process +
                    (holder.arguments.empty() ? "" : " (" + holder.arguments.front() + ")");
      hold.byThisDomain = ours;
    }
  }
  return hold;
}

}  // namespace vfpass::session
