#include "host_observer.hpp"

#include <algorithm>
#include <string>

#include "guest_devices.hpp"
#include "subject.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::commands {
namespace {

std::size_t numberOf(const Topology& host, const Device& function) {
  return static_cast<std::size_t>(&function - host.functions.data());
}

// `0000:0c:00.0 runs at Gen3 x4 of Gen5 x16; ...`, the degraded links among these.
std::string degradedAmong(const Topology& host, const std::vector<topology::Link>& links) {
  std::vector<std::string> found;
  for (const topology::Link& link : links) {
    if (link.state == topology::LinkState::degraded) {
      found.push_back("the link of " + toString(host.functions[link.function].address) +
                      " runs at " + topology::linkText(link.now) + " of " +
                      topology::linkText(link.possible));
    }
  }
  return join(found, "; ");
}

verify::GpuPath pathBetween(const Topology& host, std::size_t pf, std::size_t gpu) {
  const std::size_t nic = topology::dataFunction(host, gpu, pf);
  const auto distance = topology::distance(host, nic, gpu);
  const auto common = topology::commonBridge(host, nic, gpu);
  const auto links = topology::linksAbove(host, gpu, common);
  verify::GpuPath path;
  path.link = topology::narrowest(links);
  path.throughRootComplex = distance >= topology::Distance::phb;
  path.distance = toString(distance);
  path.nic = topology::narrowest(topology::linksAbove(host, nic, common));
  path.degraded = degradedAmong(host, links);
  return path;
}

}  // namespace

std::vector<verify::LeasedGpu> leasedGpus(const std::vector<Lease>& leases,
                                          const GuestMachine& machine, const Topology& host) {
  const topology::DeviceMatrix inXml =
      topology::guestMatrix(topology::withPfs(machine, leases), host);
  std::vector<verify::LeasedGpu> gpus;
  for (const Lease& lease : functionLeases(leases)) {
    const Device* gpu = findFunction(host, lease.device);
    if (lease.state != LeaseState::running || gpu == nullptr || gpu->role != FunctionRole::gpu) {
      continue;
    }
    verify::LeasedGpu& found = gpus.emplace_back();
    found.entry = lease.entry;
    found.guestPath = guestPathOf(machine, lease.entry);
    for (const Lease& vf : vfLeases(leases)) {
      const Device* pf = findFunction(host, vf.pf);
      if (pf == nullptr) {
        continue;
      }
      const auto seenInXml = inXml.between(vf.entry, lease.entry);
      auto& path = found.paths[vf.entry] =
          pathBetween(host, numberOf(host, *pf), numberOf(host, *gpu));
      path.inXml = seenInXml ? std::string(toString(*seenInXml)) : std::string();
    }
  }
  return gpus;
}

std::map<std::string, PcieLink> linksAboveLeased(const std::vector<Lease>& leases,
                                                 const Topology& host) {
  std::map<std::string, PcieLink> links;
  for (const Lease& lease : leases) {
    if (const Device* device = findFunction(host, lease.pf)) {
      links[lease.entry] = topology::linkAbove(host, numberOf(host, *device)).possible;
    }
  }
  return links;
}

namespace {

unsigned portRateOf(const Device& pf) {
  unsigned rate = 0;
  for (const auto& device : pf.rdma) {
    for (const auto& port : device.ports) {
      rate = std::max(rate, port.rate);
    }
  }
  return rate;
}

std::optional<PciePackets> packetsIn(const host::Root& root, const Device& function) {
  constexpr std::size_t standardSpace = 256;
  const host::Folder folder(root, "sys/devices/" + function.path);
  return folder ? findPciePackets(folder.readBytes("config", 0, standardSpace)) : std::nullopt;
}

std::size_t rootPortOf(const Topology& host, std::size_t function) {
  while (host.functions[function].parent) {
    function = *host.functions[function].parent;
  }
  return function;
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

// VFs have what their PF has. A payload reaches every function below the root port only if all of
// them support its size.
std::optional<verify::HostPackets> packetsOf(const host::Root& root, const Topology& host,
                                             std::size_t pf) {
  const auto own = packetsIn(root, host.functions[pf]);
  if (!own) {
    return std::nullopt;
  }
  unsigned possible = own->payloadSupported;
  const std::size_t port = rootPortOf(host, pf);
  for (std::size_t each = 0; each < host.functions.size(); ++each) {
    if (!host.functions[each].physicalFunction && rootPortOf(host, each) == port) {
      const auto packets = packetsIn(root, host.functions[each]);
      possible = std::min(possible, packets ? packets->payloadSupported : possible);
    }
  }
  return verify::HostPackets{*own, possible};
}

verify::HostPlacement placementOf(const std::vector<Lease>& leases, std::string_view liveXml,
                                  const Topology& host) {
  const DomainFacts facts = domain::readPlacement(liveXml);
  verify::HostPlacement placement;
  // Nodes without CPUs are memory: CXL's, or that of a GPU.
  placement.hostNodes = static_cast<std::size_t>(std::ranges::count_if(
      host.processors.nodes,
      [](const NumaNode& node) { return !cpusInMask(node.cpuMask).empty(); }));
  placement.automatic = facts.automatic;
  placement.guestCells = !facts.cells.empty();
  for (const Lease& lease : leases) {
    const Device* device = findFunction(host, lease.pf);
    if (lease.state == LeaseState::running && device != nullptr && device->numaNode >= 0) {
      placement.devices.push_back({lease.entry, static_cast<unsigned>(device->numaNode)});
    }
  }
  if (facts.placesMemory) {
    placement.memoryNodes = facts.memoryNodes;
  }
  if (!facts.pinsAllVcpus) {
    return placement;
  }
  placement.vcpuNodes.emplace();
  for (const NumaNode& node : host.processors.nodes) {
    const auto cpus = cpusInMask(node.cpuMask);
    if (std::ranges::any_of(facts.pinnedCpus, [&](unsigned cpu) { return cpus.contains(cpu); })) {
      placement.vcpuNodes->insert(static_cast<unsigned>(node.number));
    }
  }
  return placement;
}

HostObserver::HostObserver(Session& session, const DomainDescription& domain,
                           std::map<std::string, verify::WantedInGuest> wanted)
    : session_(session),
      domain_(domain.uuid),
      claims_(claimsOf(domain)),
      wanted_(std::move(wanted)),
      machine_(domain::readGuestMachine(domain.liveXml)),
      topology_(inventory::readTopology(session.root(), host::Serials::skip)) {
  const auto leases = leasesOf(session.readLeases(), domain.uuid);
  gpus_ = leasedGpus(leases, machine_, topology_);
  placement_ = placementOf(leases, domain.liveXml, topology_);
  links_ = linksAboveLeased(leases, topology_);
}

verify::HostSide HostObserver::of(const Lease& lease) const {
  verify::HostSide side;
  side.hold = holdOf(lease);
  side.guestPath = guestPathOf(machine_, lease.entry);
  if (const auto wanted = wanted_.find(lease.entry); wanted != wanted_.end()) {
    side.guestMtu = wanted->second.mtu;
    side.gidIndex = wanted->second.gidIndex;
    side.guestAddress = wanted->second.address;
  }
  if (const Device* vf = findFunction(topology_, lease.device); vf != nullptr) {
    side.vendor = vf->vendor;
    side.device = vf->device;
  }
  const Device* pf = findFunction(topology_, lease.pf);
  if (pf != nullptr) {
    const std::size_t number = numberOf(topology_, *pf);
    const auto links = topology::linksAbove(topology_, number);
    side.link = topology::narrowest(links);
    side.degraded = degradedAmong(topology_, links);
    side.portRate = portRateOf(*pf);
    side.packets = packetsOf(session_.root(), topology_, number);
  }
  return side;
}

verify::DeviceHold HostObserver::holdOf(const Lease& lease) const {
  verify::DeviceHold hold;
  hold.inLiveXml = std::ranges::find(claims_, lease.device) != claims_.end();
  const auto function = session_.kernel().readFunction(lease.device);
  hold.driver = function ? function->driver : std::string();
  for (const auto& holder : host::vfioHolders(session_.root(), lease.device)) {
    const bool ours = isOfDomain(holder, domain_);
    if (ours || hold.holder.empty()) {
      hold.holder = "process " + holder.process +
                    (holder.arguments.empty() ? "" : " (" + holder.arguments.front() + ")");
      hold.byThisDomain = ours;
    }
  }
  return hold;
}

}  // namespace vfpass::commands
