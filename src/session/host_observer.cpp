#include "vfpass/session/host_observer.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/guest_machine.hpp"
#include "vfpass/host/vfio_holders.hpp"
#include "vfpass/inventory/read_topology.hpp"
#include "vfpass/session/subject.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::session {
namespace {

// The slowest link from the function up to the root complex. Both ends of a link report its speed,
// so the ports on the path are included; a function without a reported link is skipped.
PcieLink narrowest(const Topology& topology, std::size_t function, bool atBestSpeed) {
  PcieLink least;
  const auto rate = [](const PcieLink& link) { return link.speed * link.width; };
  for (std::optional<std::size_t> at = function; at; at = topology.functions[*at].parent) {
    PcieLink link = topology.functions[*at].link;
    // An idle GPU lowers the speed of its link.
    if (atBestSpeed) {
      link.speed = topology.functions[*at].best.speed;
    }
    if (rate(link) != 0 && (rate(least) == 0 || rate(link) < rate(least))) {
      least = link;
    }
  }
  return least;
}

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
      topology_(inventory::readTopology(session.root())) {
  for (const auto& lease : leasesOf(session.readLeases(), domain.uuid)) {
    if (lease.kind == LeaseKind::pciFunction) {
      functions_.push_back(lease);
    }
  }
  inXml_ = topology::guestMatrix(domain::readGuestMachine(domain.liveXml), topology_);
}

verify::HostSide HostObserver::of(const Lease& lease) const {
  verify::HostSide side;
  side.hold = holdOf(lease);
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
    side.link = narrowest(topology_, index, false);
    side.portRate = portRateOf(*pf);
    side.gpu = gpuPath(lease, index);
  }
  return side;
}

std::optional<verify::GpuPath> HostObserver::gpuPath(const Lease& vf, std::size_t nic) const {
  std::optional<std::size_t> nearest;
  std::string entry;
  for (const auto& lease : functions_) {
    const TopologyFunction* gpu = findFunction(topology_, lease.vf);
    if (gpu == nullptr || gpu->role != FunctionRole::gpu) {
      continue;
    }
    const auto index = static_cast<std::size_t>(gpu - topology_.functions.data());
    if (!nearest ||
        topology::distance(topology_, nic, index) < topology::distance(topology_, nic, *nearest)) {
      nearest = index;
      entry = lease.entry;
    }
  }
  if (!nearest) {
    return std::nullopt;
  }
  const auto distance = topology::distance(topology_, nic, *nearest);
  return verify::GpuPath{narrowest(topology_, *nearest, true), distance >= topology::Distance::phb,
                         std::string(toString(distance)), distanceInXml(vf.entry, entry)};
}

std::string HostObserver::distanceInXml(const std::string& one, const std::string& other) const {
  const auto distance = inXml_.between(one, other);
  return distance ? std::string(toString(*distance)) : std::string();
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
