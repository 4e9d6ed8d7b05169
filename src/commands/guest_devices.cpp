#include "guest_devices.hpp"

#include <algorithm>
#include <iterator>

#include "subject.hpp"
#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/confidential_guest.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::commands {
namespace {

std::vector<Lease> leasesInUse(Session& session, const DomainDescription& domain) {
  std::vector<Lease> leases = leasesOf(session.readLeases(), domain.uuid);
  std::erase_if(leases, [](const Lease& lease) { return lease.state != LeaseState::running; });
  return leases;
}

std::vector<Lease> requireAny(std::vector<Lease> leases, const DomainDescription& domain,
                              const std::string& what) {
  if (leases.empty()) {
    throw Error(
        "domain " + printable(domain.name) + ": running without a leased " + what,
        "run `vfpass attach " + shellArgument(domain.name) + "` to attach the mapping's devices",
        ExitCode::unverified);
  }
  return leases;
}

std::vector<Lease> unpluggedBy(const Plan& plan) {
  std::vector<Lease> leases;
  for (const auto& step : plan.steps) {
    if (const auto* unplug = std::get_if<UnplugDevice>(&step.action)) {
      leases.push_back(unplug->lease);
    }
  }
  return leases;
}

std::string domainsOf(const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  for (const Lease& lease : leases) {
    if (names.empty() || names.back() != printable(lease.domainName)) {
      names.push_back(printable(lease.domainName));
    }
  }
  return names.empty() ? "no VM has a lease" : "VMs with leases: " + joinFirst(names);
}

std::string remedyWithoutDevices(const std::string& vm, const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  std::ranges::transform(leases, std::back_inserter(names), &Lease::domainName);
  const auto near = closestSpelling(vm, names);
  return "run `vfpass attach " + shellArgument(vm) + "` first" +
         (near ? ", or did you mean " + printable(*near) + "?" : "");
}

// iommufd if any device uses it: that device cannot reach the others' BARs.
std::optional<VfioBackend> openBackend(Session& session, const std::vector<Lease>& leases) {
  const host::Root root = session.root();
  const host::VfioUsers users = host::readVfioUsers(root);
  std::optional<VfioBackend> backend;
  for (const Lease& lease : leases) {
    const auto own = host::openBackendOf(root, lease.device, users);
    backend = own == VfioBackend::iommufd || !backend ? own : backend;
  }
  return backend;
}

}  // namespace

DomainDescription existingDomain(Session& session, const std::string& vm) {
  auto domain = session.hypervisor().findDomain(vm);
  if (!domain) {
    throw Error("libvirt has no domain " + printable(vm),
                "run `virsh list --all` to list the domains", ExitCode::badInput);
  }
  return *std::move(domain);
}

DomainDescription runningGuest(Session& session, const std::string& vm,
                               const std::string& command) {
  DomainDescription domain = existingDomain(session, vm);
  if (!domain.active) {
    throw Error(
        "domain " + printable(domain.name) + " is not running",
        "run `virsh start " + shellArgument(domain.name) + "`, then `vfpass " + command + "` again",
        ExitCode::unverified);
  }
  return domain;
}

std::vector<Lease> runningLeases(Session& session, const DomainDescription& domain) {
  return requireAny(leasesInUse(session, domain), domain, "device");
}

std::vector<Lease> runningVfs(Session& session, const DomainDescription& domain) {
  return requireAny(vfLeases(leasesInUse(session, domain)), domain, "VF");
}

void requireUnused(Session& session, const Plan& plan, bool force) {
  const auto leases = unpluggedBy(plan);
  if (leases.empty()) {
    return;
  }
  const std::string domain = "domain " + printable(plan.domainName);
  if (force) {
    session.warn(domain + ": not checking whether the guest uses the devices (--force)");
    return;
  }
  // All devices are asked about before one error names them all.
  agent::Agent agent(session.hypervisor(), plan.domain, plan.domainName, deadlines::deviceUse);
  std::vector<std::string> users;
  std::vector<std::string> unknown;
  for (const auto& lease : leases) {
    const auto use = agent::findUsers(agent, lease);
    for (const auto& user : use.users) {
      users.push_back(lease.entry + ": " + user);
    }
    for (const auto& reason : use.notObservable) {
      unknown.push_back(lease.entry + ": " + reason);
    }
  }
  if (!users.empty()) {
    throw Error(domain + ": the guest is using the devices: " + join(users, "; "),
                "stop using them in the guest, or unplug them with --force", ExitCode::refused);
  }
  if (!unknown.empty()) {
    throw Error(
        domain + ": cannot tell whether the guest is using the devices: " + join(unknown, "; "),
        "check in the guest, then unplug with --force", ExitCode::unverified);
  }
}

GuestMachine guestMachineOf(Session& session, const std::string& vm,
                            const std::vector<Lease>& leases) {
  const DomainDescription domain = existingDomain(session, vm);
  return topology::withPfs(
      domain::readGuestMachine(domain.active ? domain.liveXml : domain.persistentXml),
      leasesOf(leases, domain.uuid));
}

std::vector<PciAddress> guestPathOf(const GuestMachine& machine, const std::string& entry) {
  const auto device = std::ranges::find(machine.passed, entry, &PassedDevice::name);
  return device == machine.passed.end() ? std::vector<PciAddress>{}
                                        : topology::guestPath(machine, device->place);
}

std::optional<PciAddress> addressInGuest(const GuestMachine& machine, const Lease& lease) {
  const auto device = std::ranges::find(machine.passed, lease.entry, &PassedDevice::name);
  return device == machine.passed.end() ? std::nullopt
                                        : topology::guestAddress(machine, device->place);
}

std::vector<LeasedDevice> guestDevicesOf(const std::string& vm,
                                         const report::TopologyReport& report) {
  std::vector<LeasedDevice> devices;
  for (const Lease& lease : report.leases) {
    if (lease.domainName != vm && toString(lease.domain) != vm) {
      continue;
    }
    const Device* function = findFunction(report.topology, lease.device);
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
                remedyWithoutDevices(vm, report.leases), ExitCode::badInput);
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
    const Device* function = findFunction(guest, *address);
    placed.push_back({device.function, *address, function == nullptr ? -1 : function->numaNode});
  }
  return placed;
}

std::optional<Version> kernelOf(const host::Root& root) {
  return leadingVersion(root.readText("proc/sys/kernel/osrelease").value_or(""));
}

plan::BackendTerms backendTerms(const host::Root& root, const Mapping& mapping,
                                const Topology& topology, const DomainFacts& facts) {
  plan::BackendTerms terms;
  terms.requested = mapping.iommuBackend;
  terms.domains = facts.iommufd;
  terms.domainsDevices = facts.iommufdDevices;
  terms.containers = host::hasContainers(root).value_or(true);
  terms.fastSmmus = facts.fastSmmus > 0;
  terms.peers = plan::hasPeers(mapping, facts.foreignFunctions, topology);
  terms.confidential = bouncesDma(facts.launchSecurity);
  terms.kernel = kernelOf(root);
  return terms;
}

namespace {

// Unknown in a captured tree, and if libvirt does not respond.
HypervisorVersions versionsIfAnswered(Session& session) {
  try {
    return session.root().isLive() ? session.hypervisor().versions() : HypervisorVersions{};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<IommufdUse> iommufdUsesOf(Session& session, const Mapping& mapping,
                                      const Topology& topology, std::string_view persistentXml) {
  const DomainFacts facts =
      persistentXml.empty() ? DomainFacts() : domain::readDomainFacts(persistentXml);
  plan::BackendTerms terms = backendTerms(session.root(), mapping, topology, facts);
  terms.configured =
      persistentXml.empty() ? VfioBackend::container : domain::configuredBackend(persistentXml);
  auto uses = plan::iommufdUses(terms);
  for (IommufdUse& use : uses) {
    use.domainName = mapping.vm;
  }
  return uses;
}

VfioBackend nextBackendOf(const Session& session, const Mapping& mapping, const Topology& topology,
                          std::string_view persistentXml) {
  return plan::chooseBackend(backendTerms(session.root(), mapping, topology,
                                          domain::readDomainFacts(persistentXml)))
      .backend;
}

std::optional<PeerMapping> peersLostBy(Session& session, const Mapping& mapping,
                                       const Topology& topology, std::string_view persistentXml) {
  const DomainFacts facts =
      persistentXml.empty() ? DomainFacts() : domain::readDomainFacts(persistentXml);
  plan::BackendTerms terms = backendTerms(session.root(), mapping, topology, facts);
  // libvirt is only asked if the answer depends on it.
  if (!terms.peers || terms.confidential ||
      plan::chooseBackend(terms).peers.backend == VfioBackend::container) {
    return std::nullopt;
  }
  terms.versions = versionsIfAnswered(session);
  PeerMapping peers = plan::chooseBackend(terms).peers;
  peers.domainName = mapping.vm;
  peers.nextStart = true;
  return peers.possible.value_or(false) ? std::nullopt : std::optional(std::move(peers));
}

std::optional<PeerMapping> peerMappingOf(Session& session, const DomainDescription& domain,
                                         const std::vector<Lease>& leases) {
  const std::string& xml = domain.active ? domain.liveXml : domain.persistentXml;
  const GuestMemory guest = domain::guestMemory(xml);
  if (guest.devices < 2 || bouncesDma(guest.launchSecurity)) {
    return std::nullopt;
  }
  PeerMapping mapping;
  mapping.domainName = domain.name;
  mapping.domain = domain.uuid;
  const auto open = domain.active ? openBackend(session, leases) : std::nullopt;
  mapping.running = open.has_value();
  mapping.backend = open.value_or(domain::configuredBackend(xml));
  const bool asks = mapping.backend == VfioBackend::iommufd;
  const host::Root root = session.root();
  plan::judgePeerMapping(mapping, host::hasContainers(root).value_or(true), kernelOf(root),
                         asks ? session.hypervisor().versions().qemu : std::nullopt);
  return mapping;
}

}  // namespace vfpass::commands
