#include "vfpass/session/add_settings.hpp"

#include <algorithm>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/inventory/read_capacity.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/settings/propose_settings.hpp"

namespace vfpass::session {
namespace {

// The plan already objects to entries whose PF cannot be selected.
std::vector<settings::Device> devicesOf(const plan::AttachInput& input) {
  std::vector<settings::Device> devices;
  std::vector<plan::Objection> raisedElsewhere;
  for (const MappedVf& vf : input.mapping.vfs) {
    const auto* pf =
        plan::selectPf(vf.pf, input.mapping, input.inventory, vf.place, raisedElsewhere);
    if (pf != nullptr) {
      devices.push_back({vf.name, pf->address, true});
    }
  }
  for (const MappedFunction& gpu : input.mapping.functions) {
    devices.push_back({gpu.name, gpu.pci, false, gpu.clique});
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

}  // namespace

void addSettings(Session& session, const Subject& subject, plan::AttachInput& input) {
  if (!input.scope.config) {
    return;  // these settings of a running domain cannot change
  }
  const auto devices = devicesOf(input);
  std::set<PciAddress> functions;
  for (const settings::Device& device : devices) {
    functions.insert(device.function);
  }
  const HostCapacity capacity = inventory::readCapacity(session.root(), input.topology, functions);
  const DomainFacts facts = domain::readDomainFacts(subject.domain.persistentXml);
  auto proposal = settings::propose(
      {input.topology, capacity, facts, input.versions, devices, appliedSettings(input)});
  for (const settings::Fault& fault : proposal.faults) {
    input.settingFaults.push_back({fault.what, fault.remedy, ExitCode::badInput});
  }
  input.settings = std::move(proposal.settings);
  if (input.machine) {
    input.machine->cells = input.mapping.applyDomainSettings ? proposal.cells : cellsOf(facts);
  }
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
  const auto open = std::count_if(
      decision.settings.begin(), decision.settings.end(),
      [&input](const DomainSetting& setting) { return !plan::isApplied(input.mapping, setting); });
  for (const DomainSetting& setting : decision.settings) {
    if (!plan::isApplied(input.mapping, setting)) {
      session.note("domain setting not applied: " + setting.name + ": " + printable(setting.what));
    }
  }
  if (open > 0) {
    session.note("run `vfpass plan " + shellArgument(input.domainName) + "` for the reasons" +
                 (input.mapping.applyDomainSettings
                      ? ""
                      : "; set `domain-settings: apply` in the mapping to let attach apply the "
                        "proposed settings"));
  }
}

}  // namespace vfpass::session
