#include "drift.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::commands {
namespace {

constexpr std::string_view separator = "; ";

// `kernel: WHAT; REMEDY` (drift.hpp); the remedy may be missing.
void addDriftLine(std::string_view line, std::vector<std::string>& seen,
                  std::vector<std::string>& remedies) {
  constexpr std::string_view prefix = "kernel: ";
  line.remove_prefix(line.starts_with(prefix) ? prefix.size() : 0);
  const auto end = line.find(separator);
  seen.emplace_back(line.substr(0, end));
  if (end != std::string_view::npos) {
    remedies.emplace_back(line.substr(end + separator.size()));
  }
}

bool haveSame(const VfSettings& one, const VfSettings& other, Attribute attribute) {
  return only(one, {attribute}) == only(other, {attribute});
}

// The settings that the lease leaves out and that have changed since the guest's start, which set
// neutral values. A driver that refused to do so kept the value from before the first lease, and a
// lease does not record that.
std::vector<Attribute> changedByOthers(const Lease& vf, const VfSettings& seen) {
  const VfSettings started = settingsOf(plan::withoutLeftOvers(vf, seen));
  std::vector<Attribute> changed;
  for (const Attribute attribute : differingAttributes(started, seen)) {
    if (haveSame(settingsOf(vf), {}, attribute) &&
        !haveSame(vf.original.settings, seen, attribute)) {
      changed.push_back(attribute);
    }
  }
  return changed;
}

void addSettingsOfOthers(const Lease& vf, const VfSettings& seen, std::vector<std::string>& lines,
                         std::vector<std::string>& remedies) {
  const VfSettings started = settingsOf(plan::withoutLeftOvers(vf, seen));
  std::vector<std::string> names;
  for (const Attribute attribute : changedByOthers(vf, seen)) {
    names.emplace_back(toString(attribute));
    lines.push_back(names.back() + " is " + describe(seen, attribute) + " instead of " +
                    describe(started, attribute) + ", and the mapping leaves it out");
  }
  if (!names.empty()) {
    const std::string domain = shellArgument(vf.domainName);
    remedies.push_back("add the wanted " + join(names, ", ") + " of " + vf.entry +
                       " to the mapping, then run `vfpass attach " + domain + "`; or shut " +
                       domain + " down, then start it again, to reset it");
  }
}

}  // namespace

Finding judgeLeasedSettings(const Lease& vf, const Inventory& inventory,
                            const std::string& bootId) {
  Finding finding{"vf-settings",   vf.entry,
                  Outcome::passed, "the kernel reports the settings of the lease for this VF",
                  "it does",       ""};
  std::vector<std::string> seen;
  std::vector<std::string> remedies;
  for (const std::string& line : kernelDrift(vf, inventory, bootId, true)) {
    addDriftLine(line, seen, remedies);
  }
  const VirtualFunction* found = plan::findVf(inventory, vf);
  if (found != nullptr && vf.state != LeaseState::reserved && vf.bootId == bootId) {
    addSettingsOfOthers(vf, found->settings, seen, remedies);
  }
  if (!seen.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen = join(seen, separator);
    finding.remedy = remedies.empty() ? "look at `vfpass status`" : join(remedies, separator);
  } else if (const auto hidden = unobservedAttributes(vf, inventory, bootId); !hidden.empty()) {
    finding.outcome = Outcome::waived;
    finding.seen = "the kernel does not show " + join(hidden, ", ");
  }
  return seenByHost(finding);
}

}  // namespace vfpass::commands
