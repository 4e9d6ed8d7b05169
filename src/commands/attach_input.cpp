#include "attach_input.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

#include "guest_devices.hpp"
#include "host_facts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/host/driver_modules.hpp"
#include "vfpass/host/vf_space.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/choose_backend.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/settings/propose_settings.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::commands {
namespace {

// In a captured tree from devlink's recorded answer, as doctor reads it.
std::optional<EswitchMode> eswitchModeOf(Session& session, const PciAddress& pf) {
  const host::Root root = session.root();
  if (root.isLive()) {
    return session.kernel().readPfSettings(pf).eswitchMode;
  }
  const auto answer = root.readText("vfpass/devlink/" + toString(pf) + "/eswitch-mode");
  return answer ? parseEswitchMode(*answer) : std::nullopt;
}

bool setsVectors(const Mapping& mapping) {
  return std::ranges::any_of(mapping.vfs, [](const MappedVf& vf) {
    return vf.settings.msixVectors || vf.automatic.contains(Attribute::msixVectors);
  });
}

bool migratesVfs(const Mapping& mapping) {
  return std::ranges::any_of(mapping.vfs, &MappedVf::migrates);
}

/// What of the host is read only if a mapping needs it.
struct Needs {
  bool vectors = false;
  bool migratable = false;
};

HostReading readHost(Session& session, Inventory inventory, const std::vector<PciAddress>& pfs,
                     const Needs& needs) {
  session.addHolders(inventory, pfs);
  for (PhysicalFunction& pf : inventory.pfs) {
    const bool named = std::ranges::find(pfs, pf.address) != pfs.end();
    if (pf.driver == "mlx5_core" && named) {
      pf.eswitchMode = eswitchModeOf(session, pf.address);
    }
    if (needs.migratable && named && pf.driver == "mlx5_core") {
      noteMigratable(pf, session.kernel().migratableVfs(pf.address));
    }
    if (needs.vectors && named && session.root().isLive()) {
      pf.totalVfVectors = session.kernel().totalVfVectors(pf.address);
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
  return readHost(session, std::move(inventory), pfs,
                  {setsVectors(subject.mapping), migratesVfs(subject.mapping)});
}

HostReading readHostForAll(Session& session, const std::vector<Lease>& leases) {
  std::vector<MappedFunction> mapped;
  for (const Mapping& mapping : session.configuration().mappings) {
    mapped.insert(mapped.end(), mapping.functions.begin(), mapping.functions.end());
  }
  Inventory inventory = session.inventory(plan::namedFunctions(leases, mapped), pfsOf(leases));
  std::vector<PciAddress> pfs;
  std::ranges::transform(inventory.pfs, std::back_inserter(pfs), &PhysicalFunction::address);
  const auto& mappings = session.configuration().mappings;
  return readHost(
      session, std::move(inventory), pfs,
      {std::ranges::any_of(mappings, setsVectors), std::ranges::any_of(mappings, migratesVfs)});
}

namespace {

// The plan already objects to entries whose PF cannot be selected.
std::vector<settings::GuestDevice> devicesOf(const plan::AttachInput& input) {
  std::vector<settings::GuestDevice> devices;
  std::vector<plan::Objection> raisedElsewhere;
  for (const MappedVf& vf : input.mapping.vfs) {
    const auto* pf =
        plan::selectPf(vf.pf, input.mapping, input.inventory, vf.place, raisedElsewhere);
    if (pf != nullptr) {
      devices.push_back({vf.name, pf->address, true});
    }
  }
  for (const MappedFunction& function : input.mapping.functions) {
    devices.push_back({function.name, function.pci, false, function.clique, function.driver});
  }
  return devices;
}

std::set<std::string> appliedSettings(const plan::AttachInput& input) {
  std::set<std::string> names;
  for (const DomainEdit& edit : editsOf(leasesOf(input.leases, input.domain))) {
    names.insert(edit.setting);
  }
  return names;
}

std::vector<GuestCell> cellsOf(const DomainFacts& facts) {
  std::vector<GuestCell> cells;
  for (const CellFacts& cell : facts.cells) {
    cells.push_back({cell.id, cell.hostNodes});
  }
  return cells;
}

// An adopted device counts once: as one of the mapping.
std::size_t adoptedDevices(const plan::AttachInput& input) {
  std::set<std::string> entries;
  for (const Lease& lease : leasesOf(input.leases, input.domain)) {
    if (isAdopted(lease)) {
      entries.insert(lease.entry);
    }
  }
  const auto add = [&](const auto& entry) {
    if (entry.adopt) {
      entries.insert(entry.name);
    }
  };
  std::ranges::for_each(input.mapping.vfs, add);
  std::ranges::for_each(input.mapping.functions, add);
  return entries.size();
}

plan::BackendChoice backendFor(const Session& session, const DomainFacts& facts,
                               const plan::AttachInput& input) {
  plan::BackendTerms terms = backendTerms(session.root(), input.mapping, input.topology, facts);
  terms.versions = input.versions;
  terms.iommufd = host::hasIommufd(session.root()).value_or(true);
  return plan::chooseBackend(terms);
}

void addBackend(plan::BackendChoice choice, plan::AttachInput& input) {
  input.backend = choice.backend;
  input.backendNote = choice.note;
  plan::append(std::move(choice.objections), input.settingFaults);
  if (choice.setting) {
    input.settings.push_back(*choice.setting);
  }
}

// Adds to the input the settings that the mapping's devices need and the persistent XML lacks
// (docs/domain-settings.md), and the guest's cells as attach will create them.
void addSettings(Session& session, const Subject& subject, plan::AttachInput& input) {
  if (!input.scope.config) {
    return;  // these settings of a running domain cannot change
  }
  const auto devices = devicesOf(input);
  std::set<PciAddress> functions;
  for (const settings::GuestDevice& device : devices) {
    functions.insert(device.function);
  }
  const HostCapacity capacity = inventory::readCapacity(session.root(), input.topology, functions);
  DomainFacts facts = domain::readDomainFacts(subject.domain.persistentXml);
  facts.foreignDevices -= std::min(facts.foreignDevices, adoptedDevices(input));
  plan::BackendChoice backend = backendFor(session, facts, input);
  auto proposal = settings::propose({input.topology, capacity, facts, input.versions, devices,
                                     appliedSettings(input), backend.backend});
  for (const settings::Fault& fault : proposal.faults) {
    input.settingFaults.push_back({fault.what, fault.remedy, ExitCode::badInput});
  }
  input.settings = std::move(proposal.settings);
  input.ownLinkSpeeds = facts.linkAliases;
  addBackend(std::move(backend), input);
  if (input.machine) {
    input.machine->cells = input.mapping.applyDomainSettings ? proposal.cells : cellsOf(facts);
  }
}

void addLiveState(Session& session, const DomainDescription& domain, const std::vector<Lease>& own,
                  plan::AttachInput& input) {
  const std::string& liveXml = domain.liveXml.text();
  input.plugged = domain::entriesWithDevice(liveXml, own);
  input.liveElements =
      domain.persistent ? domain::runningHostElements(liveXml, own) : domain::hostElements(liveXml);
  input.liveLeases = liveLeases(session, domain, own);
  input.liveCurrent = domain::sealFault(domain::parseDomain(liveXml), session.sealKey()).empty();
  for (const auto& lease : own) {
    if (domain::fitsRunning(liveXml, lease.guest)) {
      input.pluggable.insert(lease.entry);
    }
  }
}

bool adoptsAny(const Mapping& mapping) {
  return std::ranges::any_of(mapping.vfs, &MappedVf::adopt) ||
         std::ranges::any_of(mapping.functions, &MappedFunction::adopt);
}

// What `adopt: true` takes over.
void addElements(const Subject& subject, plan::AttachInput& input) {
  const DomainXml& persistentXml = subject.domain.persistentXml;
  input.transient = persistentXml.empty();
  if (adoptsAny(input.mapping)) {
    const DomainXml& xml = input.transient ? subject.domain.liveXml : persistentXml;
    input.elements = input.transient ? std::vector<HostElement>() : domain::hostElements(xml);
    input.manager = domain::managingTool(xml).name;
  }
}

// Adds our devices in the domain, and its free slots.
void addDomainState(Session& session, const Subject& subject, plan::AttachInput& input) {
  const auto own = leasesOf(input.leases, input.domain);
  const DomainXml& persistentXml = subject.domain.persistentXml;
  const DomainXml& liveXml = subject.domain.liveXml;
  addElements(subject, input);
  if (input.active) {
    addLiveState(session, subject.domain, own, input);
  }
  // Free slots in the configuration that changes: for a running guest those of its live one.
  const auto parsed = domain::parseDomain(input.scope.live ? liveXml : persistentXml);
  domain::requireKnownClaims(parsed);
  input.interfaces = parsed.interfaces;
  const std::string& startedXml = input.scope.config ? persistentXml : liveXml;
  const DomainFacts facts = domain::readDomainFacts(startedXml);
  input.vcpus = facts.onlineVcpus;
  input.launchSecurity = facts.launchSecurity;
  input.backend = domain::configuredBackend(startedXml);
  if (input.scope.live) {
    input.placements = domain::placeInRunning(liveXml, input.scope.config ? persistentXml : "");
  } else {
    const bool flat = input.mapping.topology == "flat";
    const auto isFresh = [&](const auto& entry) {
      return !entry.adopt && std::ranges::none_of(own, [&](const Lease& lease) {
        return lease.entry == entry.name && !(flat && lease.guest.isMirrored());
      });
    };
    const auto fresh = std::ranges::count_if(subject.mapping.vfs, isFresh) +
                       std::ranges::count_if(subject.mapping.functions, isFresh);
    // A mirrored tree assigns its own addresses.
    if (flat || !domain::readGuestMachine(persistentXml).pciExpress()) {
      input.placements = domain::placeDevices(persistentXml, static_cast<std::size_t>(fresh));
    }
  }
  // The guest's own PCI tree, to which a mirrored tree is added.
  if (input.mapping.topology == "mirror") {
    input.machine = domain::withoutOurDevices(
        domain::readGuestMachine(input.scope.config ? persistentXml : liveXml));
  }
  // Whether the persistent configuration has to change at all.
  std::vector<Lease> persistent = own;
  std::erase_if(persistent, [](const Lease& lease) { return !lease.persistent; });
  input.xmlCurrent =
      persistentXml.empty() || domain::carriesLeases(persistentXml, persistent, session.sealKey());
}

}  // namespace

plan::AttachInput attachInput(Session& session, const Subject& subject, const DomainSurvey& survey,
                              const std::vector<Lease>& leases, const Scope& scope,
                              const HostReading& host) {
  plan::AttachInput input;
  input.mapping = subject.mapping;
  input.nearFaults = subject.nearFaults;
  input.policy = session.configuration().host;
  input.inventory = host.inventory;
  input.domain = subject.domain.uuid;
  input.domainName = subject.domain.name;
  input.active = subject.domain.active;
  input.scope = scope;
  input.leases = withCurrentNames(leases, survey);
  input.domains = survey.summaries;
  input.pools = survey.pools;
  input.unknown = survey.unknown;
  input.otherMappings = subject.otherMappings;
  // A captured tree has no boot ID; plans for it never run.
  input.bootId = session.options().sysroot == "/" ? session.kernel().bootId() : "";
  input.topology = host.topology;
  input.versions = host.versions;
  if (input.mapping.nvlink == NvlinkMode::partition) {
    auto answer = askForPartitions(session.root());
    input.partitions = std::move(answer.partitions);
    input.partitionProblem = std::move(answer.problem);
    input.fabricClient = answer.installed;
  }
  if (std::ranges::any_of(input.mapping.vfs, &MappedVf::migrates)) {
    input.kernel = kernelOf(session.root());
    input.hasMigrationDriver =
        host::hasVfioDriver(session.root(), std::string(mlx5MigrationDriver));
  }
  addDomainState(session, subject, input);
  addSettings(session, subject, input);
  return input;
}

report::PlanSettings settingsToShow(const plan::AttachInput& input,
                                    const plan::AttachDecision& decision,
                                    const std::string& after) {
  report::PlanSettings shown;
  std::vector<DomainEdit> further;
  for (const DomainSetting& setting : decision.settings) {
    const bool applied = plan::isApplied(input.mapping, setting);
    shown.settings.push_back({setting, applied});
    if (setting.edit && !applied) {
      further.push_back(*setting.edit);
    }
  }
  if (!further.empty()) {
    shown.xmlDiff = domain::xmlDiff(after, domain::withEdits(after, further));
  }
  return shown;
}

void noteSettings(Session& session, const plan::AttachInput& input,
                  const plan::AttachDecision& decision) {
  bool open = false;
  for (const DomainSetting& setting : decision.settings) {
    if (!plan::isApplied(input.mapping, setting)) {
      session.note("domain setting not applied: " + setting.name + ": " + printable(setting.what));
      open = true;
    }
  }
  if (open) {
    session.note("run `vfpass plan " + shellArgument(input.domainName) + "` for the reasons" +
                 (input.mapping.applyDomainSettings
                      ? ""
                      : "; set `domain-settings: apply` in the mapping to let attach apply the "
                        "proposed settings"));
  }
}

namespace {

std::vector<std::string> kernelArguments(const host::Root& root) {
  std::string text = root.readText("proc/cmdline").value_or("");
  std::ranges::replace(text, ' ', '\n');
  return splitLines(text);
}

}  // namespace

std::vector<plan::Objection> checkVfSpace(Session& session, const Plan& plan) {
  std::vector<plan::Objection> objections;
  for (const Step& step : plan.steps) {
    const auto* creation = std::get_if<CreateVfs>(&step.action);
    if (creation == nullptr) {
      continue;
    }
    const host::Root root = session.root();
    const PhysicalFunction pf = session.kernel().readPf(creation->pf);
    const host::VfSpace space = host::readVfSpace(root, pf);
    const std::string missing = host::missingVfSpace(space, creation->count);
    if (pf.vfs.empty() && !missing.empty()) {
      objections.push_back({"PF " + toString(pf.address) + ": cannot create " +
                                std::to_string(creation->count) + " VFs: " + missing,
                            host::vfSpaceRemedy(space, kernelArguments(root)), ExitCode::failed});
    }
  }
  return objections;
}

}  // namespace vfpass::commands
