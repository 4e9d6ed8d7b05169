#include "vfpass/session/leased_gpus.hpp"

#include <algorithm>
#include <string>

#include "vfpass/topology/device_matrix.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::session {
namespace {

std::size_t numberOf(const Topology& host, const TopologyFunction& function) {
  return static_cast<std::size_t>(&function - host.functions.data());
}

}  // namespace

std::vector<PciAddress> guestPathOf(const GuestMachine& machine, const std::string& entry) {
  const auto device = std::ranges::find(machine.passed, entry, &PassedDevice::name);
  return device == machine.passed.end() ? std::vector<PciAddress>{}
                                        : topology::guestPath(machine, device->place);
}

std::vector<verify::LeasedGpu> leasedGpus(const std::vector<Lease>& leases,
                                          const GuestMachine& machine, const Topology& host) {
  const topology::DeviceMatrix inXml =
      topology::guestMatrix(topology::withPfs(machine, leases), host);
  std::vector<verify::LeasedGpu> gpus;
  for (const Lease& lease : leases) {
    const TopologyFunction* gpu = findFunction(host, lease.vf);
    if (isVf(lease) || lease.state != LeaseState::running || gpu == nullptr ||
        gpu->role != FunctionRole::gpu) {
      continue;
    }
    verify::LeasedGpu& found = gpus.emplace_back();
    found.entry = lease.entry;
    found.guestPath = guestPathOf(machine, lease.entry);
    for (const Lease& vf : leases) {
      const TopologyFunction* pf = isVf(vf) ? findFunction(host, vf.pf) : nullptr;
      if (pf == nullptr) {
        continue;
      }
      const auto distance = topology::distance(host, numberOf(host, *pf), numberOf(host, *gpu));
      const auto seenInXml = inXml.between(vf.entry, lease.entry);
      found.paths[vf.entry] = {narrowestLink(host, numberOf(host, *gpu), true),
                               distance >= topology::Distance::phb, std::string(toString(distance)),
                               seenInXml ? std::string(toString(*seenInXml)) : std::string()};
    }
  }
  return gpus;
}

PcieLink narrowestLink(const Topology& host, std::size_t function, bool atBestSpeed) {
  PcieLink least;
  const auto rate = [](const PcieLink& link) { return link.speed * link.width; };
  for (std::optional<std::size_t> at = function; at; at = host.functions[*at].parent) {
    PcieLink link = host.functions[*at].link;
    if (atBestSpeed) {
      link.speed = host.functions[*at].best.speed;
    }
    if (rate(link) != 0 && (rate(least) == 0 || rate(link) < rate(least))) {
      least = link;
    }
  }
  return least;
}

}  // namespace vfpass::session
