#include <algorithm>
#include <chrono>

#include "commands.hpp"
#include "guest_devices.hpp"
#include "host_facts.hpp"
#include "host_observer.hpp"
#include "subject.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/judge_confidential_guest.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/setup/setup_view.hpp"
#include "vfpass/topology/guest_topology.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::commands {
namespace {

void warnOfProblemsInConfiguration(Session& session) {
  if (!session.configuration().problems.empty()) {
    session.warn("configuration: ignoring files with mistakes; run `vfpass check`");
  }
}

// A mapping can name a VM that libvirt does not have yet; its devices are checked all the same.
std::optional<DomainDescription> domainOf(Session& session, const std::string& vm) {
  if (!session.root().isLive()) {
    return std::nullopt;
  }
  try {
    auto domain = session.hypervisor().findDomain(vm);
    if (!domain) {
      session.warn("libvirt has no domain " + printable(vm) +
                   ": checking only the devices of its mapping");
    }
    return domain;
  } catch (const Error& error) {
    session.warn(withRemedy(error));
    return std::nullopt;
  }
}

bool hasMirroredGpu(const Topology& topology, const std::vector<Lease>& leases) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    const Device* function = findFunction(topology, lease.device);
    return lease.guest.isMirrored() && function != nullptr && function->role == FunctionRole::gpu;
  });
}

// The VFs and GPUs that the file has to have, at the addresses that the guest gives them: firmware
// numbers buses in its own order.
std::vector<verify::NcclFileDevice> devicesOfFile(agent::Agent& agent, const GuestMachine& machine,
                                                  const std::vector<Lease>& leases,
                                                  const Topology& topology) {
  const setup::SetupView view = setup::readSetupView(agent, "");
  const auto links = linksAboveLeased(leases, topology);
  std::vector<verify::NcclFileDevice> devices;
  for (const Lease& lease : leases) {
    const Device* function = findFunction(topology, lease.device);
    const bool gpu = function != nullptr && function->role == FunctionRole::gpu;
    const auto address = setup::functionAt(view, guestPathOf(machine, lease.entry));
    if ((isVf(lease) || gpu) && address) {
      const auto link = links.find(lease.entry);
      devices.push_back({*address, link == links.end() ? PcieLink{} : link->second});
    }
  }
  return devices;
}

// Sends each query to the agent once, and does not wait for a guest that does not answer. nullopt:
// the guest has no file and needs none.
std::optional<Finding> topologyFileOf(Session& session, const DomainDescription& domain,
                                      const Topology& topology, const std::vector<Lease>& leases,
                                      bool needed) {
  const std::string guestSetup = "`vfpass guest-setup " + shellArgument(domain.name) + "`";
  try {
    agent::Agent agent(session.hypervisor(), domain.uuid, domain.name, deadlines::doctorAgent,
                       StopSignals::throwIfAsked);
    const auto devices =
        devicesOfFile(agent, domain::readGuestMachine(domain.liveXml), leases, topology);
    return needed ? verify::judgeNcclTopology(agent, guestSetup, devices)
                  : verify::judgeNcclFile(agent, guestSetup, devices);
  } catch (const Error& error) {
    return Finding{"nccl-topology", "",
                   Outcome::waived, "a topology file for NCCL in the guest",
                   error.what(),    "vfpass verify " + shellArgument(domain.name)};
  }
}

// Before the guest is asked for its topology file.
std::optional<doctor::MirroredGuest> mirroredGuest(const DomainDescription& domain,
                                                   const Topology& topology,
                                                   const std::vector<Lease>& leases) {
  if (!hasMirroredGpu(topology, leases)) {
    return std::nullopt;
  }
  const GuestMachine machine =
      domain::readGuestMachine(domain.active ? domain.liveXml : domain.persistentXml);
  return doctor::MirroredGuest{domain.name, topology::entriesBehindSwitches(machine)};
}

// Only if the mapping gives the guest a device, and its XML has `<launchSecurity>`.
std::optional<ConfidentialGuest> confidentialOf(Session& session, const DomainDescription& domain,
                                                const Mapping& mapping, const Topology& topology,
                                                const doctor::Requirements& requirements) {
  const auto maps = [&](FunctionRole role) {
    return std::ranges::any_of(requirements.functions, [&](const PciAddress& address) {
      const Device* function = findFunction(topology, address);
      return function != nullptr && function->role == role;
    });
  };
  plan::ConfidentialTerms terms;
  terms.type = requirements.guest->launchSecurity;
  terms.nics = !requirements.vfs.empty() || maps(FunctionRole::nic);
  terms.gpus = maps(FunctionRole::gpu);
  if (terms.type.empty() || (requirements.functions.empty() && !terms.nics)) {
    return std::nullopt;
  }
  const std::string& xml = domain.persistentXml;  // attach adds no element to a transient domain
  terms.backend = xml.empty() ? domain::configuredBackend(domain.liveXml)
                              : nextBackendOf(session, mapping, topology, xml);
  terms.qemu = session.hypervisor().versions().qemu;
  return plan::judgeConfidentialGuest(terms);
}

// Now, and if it is possible now, also from the next start on.
void addPeers(Session& session, const DomainDescription& domain, const Mapping& mapping,
              const Topology& topology, const std::vector<Lease>& leases,
              doctor::Requirements& requirements) {
  const auto now = peerMappingOf(session, domain, leases);
  if (now) {
    requirements.peers.push_back(*now);
  }
  const std::string& xml = domain.persistentXml.empty() ? domain.liveXml : domain.persistentXml;
  const auto next = now && !now->possible.value_or(false)
                        ? std::nullopt
                        : peersLostBy(session, mapping, topology, xml);
  if (next) {
    requirements.peers.push_back(*next);
  }
}

// Without its XML, which libvirt cannot always send, the devices of the mapping are checked.
void addXml(Session& session, const DomainDescription& domain, const Mapping& mapping,
            const Topology& topology, const std::vector<Lease>& leases,
            doctor::Requirements& requirements) {
  try {
    const std::string& xml = domain.persistentXml.empty() ? domain.liveXml : domain.persistentXml;
    requirements.guest = domain::guestMemory(xml);
    requirements.iommufd = iommufdUsesOf(session, mapping, topology, xml);
    addPeers(session, domain, mapping, topology, leases, requirements);
    requirements.confidential = confidentialOf(session, domain, mapping, topology, requirements);
    requirements.mirrored = mirroredGuest(domain, topology, leases);
  } catch (const Error& error) {
    session.warn(commands::withRemedy(error));
  }
}

void addGuest(Session& session, const Topology& topology, const Mapping& mapping,
              doctor::Requirements& requirements) {
  const auto domain = domainOf(session, mapping.vm);
  if (!domain) {
    addBackend(session, topology, mapping, requirements);
    return;
  }
  const auto leases = commands::leasesOf(session.readLeases(), domain->uuid);
  addXml(session, *domain, mapping, topology, leases, requirements);
  auto& mirrored = requirements.mirrored;
  if (mirrored && domain->active) {
    mirrored->topologyFile =
        topologyFileOf(session, *domain, topology, leases, !mirrored->behindSwitches.empty());
  }
}

bool isNamed(const Device& function, const std::string& name) {
  const auto named = [&](const auto& device) { return device.name == name; };
  return parsePciAddress(name) == function.address ||
         std::ranges::any_of(function.netdevs, named) ||
         std::ranges::any_of(function.rdma, named) || function.serial == name;
}

// By PCI address, netdev or RDMA device; by serial number all functions of a card. A name that the
// host lacks is an error: nothing selected would mean that everything counts.
std::vector<PciAddress> selectedDevices(const Topology& topology,
                                        const std::vector<std::string>& names) {
  std::vector<PciAddress> selected;
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    const std::size_t before = selected.size();
    for (const Device& function : topology.functions) {
      if (isNamed(function, name)) {
        selected.push_back(function.address);
      }
    }
    if (selected.size() == before) {
      unknown.push_back(printable(name));
    }
  }
  if (!unknown.empty()) {
    throw Error("--device: not on this host: " + join(unknown, ", "),
                "specify a PCI address, a netdev, an RDMA device or a serial number; `vfpass topo` "
                "lists them",
                ExitCode::badInput);
  }
  return selected;
}

doctor::Requirements requirementsFor(Session& session, const Topology& topology,
                                     const std::string& vm) {
  if (!commands::hasConfiguration(session)) {
    if (!vm.empty()) {
      throw Error("--vm: no mappings for the captured tree",
                  "specify their directory with --config-dir", ExitCode::badInput);
    }
    return {};
  }
  warnOfProblemsInConfiguration(session);
  const auto& configuration = session.configuration();
  if (vm.empty()) {
    return commands::requirementsOfHost(session, topology);
  }
  const Mapping* mapping = commands::mappingNamedBy(session, vm);
  if (mapping == nullptr) {
    commands::throwNoMapping(session, vm, vm);
  }
  auto requirements = doctor::requirementsOf(topology, nearSettled(session, topology, {*mapping}),
                                             configuration.host, true);
  requirements.units = commands::requiredUnits(configuration, {*mapping});
  addGuest(session, topology, *mapping, requirements);
  return requirements;
}

struct DoctorOptions {
  std::string vm;
  std::vector<std::string> devices;
  bool all = false;
};

std::vector<Diagnosis> examineFor(Session& session, const DoctorOptions& options) {
  const host::Root root = session.root();
  const Topology topology = inventory::readTopology(root);
  warnOfProblems(session, topology);
  doctor::Requirements requirements = requirementsFor(session, topology, options.vm);
  requirements.selected = selectedDevices(topology, options.devices);
  commands::addLeases(session, requirements);
  return commands::diagnose(session, root, topology, requirements, inquiriesOf(session));
}

ExitCode doctorCommand(Session& session, const DoctorOptions& options) {
  const auto diagnoses = examineFor(session, options);
  report::writeDoctor(session.pagedOut(), diagnoses,
                      options.all ? report::ListedChecks::all : report::ListedChecks::none,
                      session.style());
  return std::ranges::any_of(diagnoses, isFailure) ? ExitCode::failed : ExitCode::done;
}

}  // namespace

std::vector<Diagnosis> diagnosesOfVm(Session& session, const std::string& vm) {
  return examineFor(session, {vm, {}, false});
}

void addDoctor(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "doctor",
      "Check whether this host can run GPUDirect RDMA in VMs, in the order of the chain: fix\n"
      "the first problem first");
  const auto options = std::make_shared<DoctorOptions>();
  command
      ->add_option("--vm", options->vm,
                   "Check only the devices and requirements of this VM's mapping")
      ->type_name("VM");
  command
      ->add_option("--device", options->devices,
                   "Count only this device as used (repeatable): PCI address, netdev, RDMA device, "
                   "or\nserial number of the card")
      ->type_name("DEVICE")
      ->allow_extra_args(false)
      ->excludes("--vm");
  command->add_flag("--all", options->all, "Also list the checks that found no problem");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return doctorCommand(session, *options); };
  });
}

}  // namespace vfpass::commands
