#include "perform.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "device_records.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/plan_soft_roce.hpp"

namespace vfpass::apply {
namespace {

Hypervisor& hypervisorOf(Tools& tools) {
  if (tools.hypervisor == nullptr) {
    throw Error("cannot run a step on a domain in the hook: it must not call libvirt",
                "run `vfpass recover`");
  }
  return *tools.hypervisor;
}

// One line for all VFs with the same attribute and reason: a PF has many new VFs.
void warnOfRefusals(const ConfigureVfs& action, const std::vector<RefusedAttribute>& refusals,
                    std::vector<std::string>& warnings) {
  std::map<std::string, std::vector<std::string>> vfs;
  std::vector<std::string> order;
  for (const auto& refused : refusals) {
    const std::string what = ": the driver refused the optional attribute " +
                             std::string(toString(refused.attribute)) + ": " + refused.reason;
    if (vfs[what].empty()) {
      order.push_back(what);
    }
    vfs[what].push_back(std::to_string(refused.vfIndex));
  }
  for (const auto& what : order) {
    const auto& indices = vfs[what];
    warnings.push_back((indices.size() == 1 ? "VF " : "VFs ") + join(indices, ", ") + " of PF " +
                       toString(action.pf) + what);
  }
}

bool statesSame(const ConfigureVfs& action, const Lease& lease, Attribute attribute) {
  const VfSettings wanted = only(vfOf(lease).settings, {attribute});
  return wanted != VfSettings{} && std::ranges::any_of(action.vfs, [&](const VfChange& change) {
           return change.index == vfOf(lease).index && only(change.settings, {attribute}) == wanted;
         });
}

// A refusal of another value, such as a neutral one, says nothing about the lease's.
void recordRefusals(const ConfigureVfs& action, const std::vector<RefusedAttribute>& refusals,
                    Tools& tools) {
  for (Lease lease :
       refusals.empty() ? std::vector<Lease>{} : tools.database.leasesOn({action.pf})) {
    if (!isVfOf(lease, action.pf)) {
      continue;
    }
    std::set<Attribute> found = vfOf(lease).refused;
    for (const auto& refused : refusals) {
      if (!refused.failed && refused.vfIndex == vfOf(lease).index &&
          statesSame(action, lease, refused.attribute)) {
        found.insert(refused.attribute);
      }
    }
    if (found != vfOf(lease).refused) {
      vfOf(lease).refused = found;
      tools.database.recordLease(lease);
    }
  }
}

bool states(const ConfigureVfs& action, const RefusedAttribute& refused) {
  return std::ranges::any_of(action.vfs, [&](const VfChange& change) {
    return change.index == refused.vfIndex &&
           only(change.settings, {refused.attribute}) != VfSettings{};
  });
}

// An attribute may be missing where a lease has it as an optional one, and a VF that nobody has may
// keep what it has (ConfigureVfs::otherwise). Every other value is the one that the VF had before,
// or a neutral one for its next owner: if the device fails to take it now, it is still to be set.
void requireRestored(const ConfigureVfs& action, const std::vector<RefusedAttribute>& refusals,
                     const std::vector<Lease>& leases) {
  std::vector<std::string> texts;
  for (const auto& refused : refusals) {
    const bool optional = std::ranges::any_of(leases, [&](const Lease& lease) {
      return isVfOf(lease, action.pf, refused.vfIndex) &&
             statesSame(action, lease, refused.attribute);
    });
    if (refused.failed && states(action, refused) && !optional) {
      texts.push_back("cannot set " + std::string(toString(refused.attribute)) + " of VF " +
                      std::to_string(refused.vfIndex) + ": " + refused.reason);
    }
  }
  if (!texts.empty()) {
    throw Error("PF " + toString(action.pf) + ": " + join(texts, "; "),
                "find the cause in the kernel log: `dmesg | grep " + toString(action.pf) + "`");
  }
}

enum class Purpose { change, rollBack };

void configure(const ConfigureVfs& action, Purpose purpose, Tools& tools,
               std::vector<std::string>& warnings) {
  const auto refusals = purpose == Purpose::change ? tools.kernel.configureVfs(action)
                                                   : tools.kernel.restoreVfs(action);
  const bool asked = purpose == Purpose::change && !refusals.empty();
  requireRestored(action, refusals,
                  asked ? tools.database.leasesOn({action.pf}) : std::vector<Lease>{});
  warnOfRefusals(action, refusals, warnings);
  recordRefusals(action, refusals, tools);
}

// A plan is made before the driver has refused anything.
std::vector<Lease> withRefusals(std::vector<Lease> leases, const Tools& tools) {
  const auto recorded =
      leases.empty() ? std::vector<Lease>{} : tools.database.leasesOf(leases.front().domain);
  for (Lease& lease : leases) {
    const auto known = std::ranges::find_if(recorded, [&](const Lease& each) {
      return each.entry == lease.entry && each.generation == lease.generation && isVf(each) &&
             isVf(lease);
    });
    if (known != recorded.end()) {
      vfOf(lease).refused = vfOf(*known).refused;
    }
  }
  return leases;
}

// Treats unreadable metadata as a mismatch; withLeases() replaces it.
bool carries(const std::string& xml, const std::vector<Lease>& leases, const SealKey& key) {
  try {
    return domain::carriesLeases(xml, leases, key);
  } catch (const Error&) {
    return false;
  }
}

constexpr int maxDefineAttempts = 5;

void refuseWithoutDefinition(const EditDomain& action, Tools& tools) {
  const auto found = hypervisorOf(tools).findDomain(toString(action.domain));
  if (found) {
    throw Error(
        "domain " + printable(found->name) + " is transient: it has no persistent XML to change",
        "define it with `virsh define` first", ExitCode::badInput);
  }
  if (!action.leases.empty()) {
    throw Error("domain " + toString(action.domain) + " no longer exists");
  }
}

// libvirt has no compare-and-swap for definitions, and virsh edit takes no lock either. So read the
// XML again immediately before defining it, and start over if somebody has changed it. A race
// remains between that read and virDomainDefineXML: an edit made in between is lost. If a later
// edit drops our leases, the final check reports it.
void editDomain(const EditDomain& action, Tools& tools) {
  Hypervisor& hypervisor = hypervisorOf(tools);
  for (int attempt = 0; attempt < maxDefineAttempts; ++attempt) {
    const auto definition = hypervisor.readDefinition(action.domain);
    if (!definition) {
      return refuseWithoutDefinition(action, tools);
    }
    if (carries(definition->xml, action.leases, tools.sealKey)) {
      return;
    }
    const Definition edited(action.kept.empty()
                                ? domain::withLeases(definition->xml,
                                                     withRefusals(action.leases, tools),
                                                     tools.templates, tools.sealKey)
                                : domain::withDevicesKept(definition->xml, action.kept));
    if (hypervisor.readDefinition(action.domain) != definition) {
      continue;
    }
    hypervisor.defineDomain(edited);
    if (!isInEffect(action, tools)) {
      throw Error("domain " + toString(action.domain) +
                      ": libvirt did not keep all elements that vfpass added to the XML",
                  "compare `vfpass plan` with `virsh dumpxml --inactive`");
    }
    return;
  }
  throw Error("domain " + toString(action.domain) + ": its definition changed " +
                  std::to_string(maxDefineAttempts) + " times during the edit",
              "stop the program that keeps redefining it, then run the command again");
}

// Nothing can be plugged into or unplugged from a domain that is not running.
std::optional<DomainDescription> findRunning(const Uuid& domain, Tools& tools) {
  auto found = hypervisorOf(tools).findDomain(toString(domain));
  return found && found->active ? found : std::nullopt;
}

void editLive(const EditLiveMetadata& action, Tools& tools) {
  if (findRunning(action.domain, tools)) {
    tools.hypervisor->setLiveMetadata(
        action.domain, domain::metadataXml(withRefusals(action.leases, tools), tools.sealKey));
  }
}

bool hasDevice(const DomainDescription& running, const Lease& lease) {
  return domain::entriesWithDevice(running.liveXml, {lease}).contains(lease.entry);
}

bool isPlugged(const DomainDescription& running, const Lease& lease) {
  const auto claims = domain::parseDomain(running.liveXml).claims;
  const std::string alias = domain::aliasOfDevice(running.liveXml, lease);
  return std::ranges::any_of(claims, [&](const Claim& claim) {
    return claim.alias == alias && claim.device == lease.device;
  });
}

void requireSameDevice(const DomainDescription& running, const Lease& lease) {
  const auto differences = domain::runningDifferences(running.liveXml, {lease});
  if (!differences.empty()) {
    throw Error("domain " + printable(running.name) + ": the running guest already has another " +
                    "device with the alias of " + lease.entry + ": " + join(differences, "; "),
                plan::unplugForeign(running.name, lease), ExitCode::refused);
  }
}

// Its start did not wait for the attach unless its XML has devices of vfpass. The hook returned the
// lease when the earlier guest stopped, and no attribute may be set any more.
void requireSameRun(const DomainDescription& running, const Lease& lease, const Tools& tools) {
  const auto leases = tools.database.leasesOf(lease.domain);
  const bool returned = std::ranges::any_of(leases, [&](const Lease& each) {
    return each.entry == lease.entry && each.generation == lease.generation &&
           each.state == LeaseState::reserved;
  });
  if (returned) {
    throw Error("domain " + printable(running.name) +
                    " was stopped and started again while vfpass prepared " + lease.entry +
                    " for it",
                "run the command again", ExitCode::refused);
  }
}

void plug(const PlugDevice& action, Tools& tools) {
  const auto running = findRunning(action.lease.domain, tools);
  if (!running) {
    return;
  }
  if (hasDevice(*running, action.lease)) {
    return requireSameDevice(*running, action.lease);
  }
  requireSameRun(*running, action.lease, tools);
  tools.hypervisor->attachDevice(action.lease.domain,
                                 domain::deviceXml(action.lease, tools.templates));
  const auto after = findRunning(action.lease.domain, tools);
  if (after && !hasDevice(*after, action.lease)) {
    throw Error("domain " + printable(after->name) + ": " + action.lease.entry +
                    " is missing although libvirt reported that it was plugged",
                "check the daemon's log: `journalctl -u libvirtd -u virtqemud`");
  }
}

void unplug(const UnplugDevice& action, Tools& tools) {
  const auto running = findRunning(action.lease.domain, tools);
  if (running && hasDevice(*running, action.lease)) {
    tools.hypervisor->detachDevice(action.lease.domain,
                                   domain::aliasOfDevice(running->liveXml, action.lease),
                                   tools.guestTimeout, tools.checkpoint);
  }
}

template <typename Item>
std::optional<Item> findNamed(const std::vector<Item>& items, const std::string& name) {
  const auto found = std::ranges::find(items, name, &Item::name);
  return found == items.end() ? std::nullopt : std::optional(*found);
}

// The link of that name, if the record says that vfpass created it in this boot.
std::optional<RdmaLink> findOurs(const std::string& name, Tools& tools) {
  const auto record = findNamed(tools.database.softRoceRecords(), name);
  auto link = findNamed(tools.kernel.readRdmaLinks(), name);
  const bool ours = link && record && plan::isTheOneMade(*link, *record, tools.kernel.bootId());
  return ours ? std::move(link) : std::nullopt;
}

// Records the link first: if the process is killed while creating it, the link is still known to be
// ours.
void addLink(const AddSoftRoceLink& action, Tools& tools) {
  const auto ours = findOurs(action.name, tools);
  const bool taken = findNamed(tools.kernel.readRdmaLinks(), action.name).has_value();
  SoftRoceRecord record{action.name, action.netdev, std::nullopt, tools.kernel.bootId()};
  if (ours && ours->netdev == action.netdev) {
    record.number = ours->number;
    tools.database.recordSoftRoce(record);
    return;
  }
  tools.database.recordSoftRoce(record);
  try {
    record.number = tools.kernel.addSoftRoceLink(action.name, action.netdev);
  } catch (const Error&) {
    // The answer may be lost: a link that is there now and was not before is ours.
    const auto made = taken ? std::nullopt : findNamed(tools.kernel.readRdmaLinks(), action.name);
    if (made && made->softRoce && made->netdev == action.netdev) {
      record.number = made->number;
      tools.database.recordSoftRoce(record);
    } else {
      tools.database.forgetSoftRoce(action.name);
    }
    throw;
  }
  tools.database.recordSoftRoce(record);
}

void removeLink(const RemoveSoftRoceLink& action, Tools& tools) {
  RdmaLink link{action.name, true, action.netdev, action.number};
  if (!action.number) {
    const auto record = findNamed(tools.database.softRoceRecords(), action.name);
    if (!record || record->netdev != action.netdev) {
      return;  // creation never began; an earlier link of that name is not ours
    }
    const auto ours = findOurs(action.name, tools);
    link.number = ours ? ours->number : std::nullopt;
  }
  const auto links = tools.kernel.readRdmaLinks();
  const bool exists =
      link.number && std::ranges::find(links, link.number, &RdmaLink::number) != links.end();
  if (exists) {
    const auto users = tools.kernel.rdmaUsers(*link.number);
    plan::throwObjections("SoftRoCE link " + printable(link.name),
                          plan::objectionsToRemoval(users));
    tools.kernel.removeSoftRoceLink(link);
  }
  tools.database.forgetSoftRoce(action.name);
}

}  // namespace

bool isInEffect(const EditDomain& action, Tools& tools) {
  const auto found = hypervisorOf(tools).findDomain(toString(action.domain));
  if (!found) {
    return action.leases.empty();
  }
  return carries(found->persistentXml, action.leases, tools.sealKey);
}

void performResets(const std::vector<ResetFunction>& resets, Tools& tools) {
  for (const auto& reset : resets) {
    tools.onAction(reset);
  }
  resetDevices(resets, tools);
}

void performRecord(const RecordLease& record, NewUses& uses, Tools& tools) {
  tools.onAction(record);
  recordLease(record.lease, uses, tools);
}

void performDrops(const std::vector<DropLease>& drops, Tools& tools) {
  for (const auto& drop : drops) {
    tools.onAction(drop);
  }
  dropLeases(drops, tools);
}

std::vector<std::exception_ptr> performBindings(const std::vector<BindDriver>& bindings,
                                                Tools& tools) {
  for (const auto& binding : bindings) {
    tools.onAction(binding);
  }
  return tools.kernel.bindDrivers(bindings);
}

void perform(const Action& action, Tools& tools, std::vector<std::string>& warnings) {
  tools.onAction(action);
  struct Visitor {
    Tools& tools;
    std::vector<std::string>& warnings;
    void operator()(const CreateVfs& create) const {
      std::ranges::move(tools.kernel.createVfs(create), std::back_inserter(warnings));
    }
    void operator()(const RemoveVfs& remove) const { tools.kernel.removeVfs(remove); }
    void operator()(const ConfigureVfs& change) const {
      configure(change, Purpose::change, tools, warnings);
    }
    void operator()(const BindDriver& bind) const { tools.kernel.bindDriver(bind); }
    void operator()(const ResetFunction& reset) const { resetDevices({reset}, tools); }
    void operator()(const RecordLease& record) const {
      NewUses none;
      recordLease(record.lease, none, tools);
    }
    void operator()(const DropLease& drop) const { dropLeases({drop}, tools); }
    // The journal must not record it as done before it would survive a power failure: recovery
    // would take an operation without its XML for complete.
    void operator()(const EditDomain& edit) const {
      editDomain(edit, tools);
      hypervisorOf(tools).syncDefinitions();
    }
    void operator()(const EditLiveMetadata& edit) const { editLive(edit, tools); }
    void operator()(const PlugDevice& device) const { plug(device, tools); }
    void operator()(const UnplugDevice& device) const { unplug(device, tools); }
    void operator()(const SetEswitchMode& set) const { tools.kernel.setEswitchMode(set); }
    void operator()(const SetPartition& set) const { setPartition(set, tools); }
    void operator()(const SetMtu& set) const { tools.kernel.setMtu(set); }
    void operator()(const SetLinkUp& set) const { tools.kernel.setLinkUp(set); }
    void operator()(const AddSoftRoceLink& add) const { addLink(add, tools); }
    void operator()(const RemoveSoftRoceLink& remove) const { removeLink(remove, tools); }
    void operator()(const RecordSoftRoce& record) const {
      tools.database.recordSoftRoce(record.record);
    }
    void operator()(const ForgetSoftRoce& forget) const {
      tools.database.forgetSoftRoce(forget.name);
    }
  };
  std::visit(Visitor{tools, warnings}, action);
}

void syncDefinition(const Plan& plan, Tools& tools) {
  const bool edits = std::ranges::any_of(
      plan.steps, [](const Step& step) { return std::holds_alternative<EditDomain>(step.action); });
  if (edits) {
    hypervisorOf(tools).syncDefinitions();
  }
}

void performInverse(const Action& action, Tools& tools, std::vector<std::string>& warnings) {
  if (const auto* unplugging = std::get_if<UnplugDevice>(&action)) {
    const auto running = findRunning(unplugging->lease.domain, tools);
    if (running && !isPlugged(*running, unplugging->lease)) {
      return;  // nothing was plugged: the guest has no such device, or another one of that name
    }
  }
  const auto* edit = std::get_if<EditDomain>(&action);
  if (edit != nullptr && !hypervisorOf(tools).findDomain(toString(edit->domain))) {
    return;  // undefined since: there is no XML to restore, and gc ends the leases
  }
  const auto* change = std::get_if<ConfigureVfs>(&action);
  if (change == nullptr) {
    return perform(action, tools, warnings);
  }
  tools.onAction(action);
  configure(*change, Purpose::rollBack, tools, warnings);
}

}  // namespace vfpass::apply
