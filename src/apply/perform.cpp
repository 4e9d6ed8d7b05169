#include "perform.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

Hypervisor& hypervisorOf(Tools& tools) {
  if (tools.hypervisor == nullptr) {
    throw Error("a step on a domain needs libvirt, which the hook must not call",
                "run `vfpass recover`");
  }
  return *tools.hypervisor;
}

void configure(const ConfigureVfs& action, Tools& tools, std::vector<std::string>& warnings) {
  for (const auto& refused : tools.kernel.configureVfs(action)) {
    warnings.push_back("VF " + std::to_string(refused.vfIndex) + " of PF " + toString(action.pf) +
                       ": the driver refused " + std::string(toString(refused.attribute)) +
                       ", which is not required: " + refused.reason);
  }
}

// Metadata that cannot be read is not as wanted, whatever is wanted; withLeases() replaces it.
bool carries(const std::string& xml, const std::vector<Lease>& leases) {
  try {
    return domain::carriesLeases(xml, leases);
  } catch (const Error&) {
    return false;
  }
}

void editDomain(const EditDomain& action, Tools& tools) {
  const auto found = hypervisorOf(tools).findDomain(toString(action.domain));
  if (!found) {
    if (action.leases.empty()) {
      return;
    }
    throw Error("domain " + toString(action.domain) + " does not exist any more");
  }
  if (found->persistentXml.empty()) {
    throw Error(
        "domain " + printable(found->name) + " is transient: it has no persistent XML to change",
        "define it first (`virsh define`)", ExitCode::badInput);
  }
  if (carries(found->persistentXml, action.leases)) {
    return;
  }
  tools.hypervisor->defineDomain(
      domain::withLeases(found->persistentXml, action.leases, tools.templates));
  if (!isInEffect(action, tools)) {
    throw Error(
        "libvirt did not keep what was put into the XML of domain " + printable(found->name),
        "compare `vfpass plan` with `virsh dumpxml --inactive`");
  }
}

// A domain that does not run has nothing to plug into and nothing to take out.
std::optional<DomainDescription> findRunning(const Uuid& domain, Tools& tools) {
  auto found = hypervisorOf(tools).findDomain(toString(domain));
  return found && found->active ? found : std::nullopt;
}

void editLive(const EditLiveMetadata& action, Tools& tools) {
  if (findRunning(action.domain, tools)) {
    tools.hypervisor->setLiveMetadata(action.domain, domain::metadataXml(action.leases));
  }
}

bool hasDevice(const DomainDescription& running, const Lease& lease) {
  return domain::devicesOfOurs(running.liveXml).contains(lease.vfName);
}

void plug(const PlugDevice& action, Tools& tools) {
  const auto running = findRunning(action.lease.domain, tools);
  if (!running || hasDevice(*running, action.lease)) {
    return;
  }
  tools.hypervisor->attachDevice(action.lease.domain,
                                 domain::deviceXml(action.lease, tools.templates));
  const auto after = findRunning(action.lease.domain, tools);
  if (after && !hasDevice(*after, action.lease)) {
    throw Error(
        "libvirt did not plug " + action.lease.vfName + " into domain " + printable(after->name),
        "see what the daemon says: journalctl -u libvirtd -u virtqemud");
  }
}

void unplug(const UnplugDevice& action, Tools& tools) {
  const auto running = findRunning(action.lease.domain, tools);
  if (running && hasDevice(*running, action.lease)) {
    tools.hypervisor->detachDevice(action.lease.domain, deviceAlias(action.lease),
                                   tools.guestPatience);
  }
}

}  // namespace

bool isLiveAction(const Action& action) {
  return std::holds_alternative<EditLiveMetadata>(action) ||
         std::holds_alternative<PlugDevice>(action) || std::holds_alternative<UnplugDevice>(action);
}

bool isDomainAction(const Action& action) {
  return std::holds_alternative<EditDomain>(action) || isLiveAction(action);
}

bool isKernelAction(const Action& action) {
  return !isDomainAction(action) && !std::holds_alternative<RecordLease>(action) &&
         !std::holds_alternative<DropLease>(action);
}

bool isInEffect(const EditDomain& action, Tools& tools) {
  const auto found = hypervisorOf(tools).findDomain(toString(action.domain));
  if (!found) {
    return action.leases.empty();
  }
  return carries(found->persistentXml, action.leases);
}

void perform(const Action& action, Tools& tools, std::vector<std::string>& warnings) {
  tools.onAction(action);
  struct Visitor {
    Tools& tools;
    std::vector<std::string>& warnings;
    void operator()(const CreateVfs& create) const { tools.kernel.createVfs(create); }
    void operator()(const RemoveVfs& remove) const { tools.kernel.removeVfs(remove); }
    void operator()(const ConfigureVfs& change) const { configure(change, tools, warnings); }
    void operator()(const BindDriver& bind) const { tools.kernel.bindDriver(bind); }
    void operator()(const ResetFunction& reset) const { tools.kernel.resetFunction(reset); }
    void operator()(const RecordLease& record) const { tools.database.recordLease(record.lease); }
    void operator()(const DropLease& drop) const {
      tools.database.dropLease(drop.domain, drop.vfName, drop.generation);
    }
    void operator()(const EditDomain& edit) const { editDomain(edit, tools); }
    void operator()(const EditLiveMetadata& edit) const { editLive(edit, tools); }
    void operator()(const PlugDevice& device) const { plug(device, tools); }
    void operator()(const UnplugDevice& device) const { unplug(device, tools); }
  };
  std::visit(Visitor{tools, warnings}, action);
}

}  // namespace vfpass::apply
