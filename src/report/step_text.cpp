#include "step_text.hpp"

#include <algorithm>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::report {
namespace {

std::string valueText(const VfSettings& settings, Attribute attribute) {
  return attribute == Attribute::vlan && vlanText(settings.vlan) != nothing
             ? vlanText(settings.vlan)
             : describe(settings, attribute);
}

// A rollback sets the neutral value also where none could be read, and "from nothing" is not worth
// a reader's time.
bool isNeutral(const VfSettings& settings, Attribute attribute) {
  const VfSettings one = only(settings, {attribute});
  return one == only(neutralSettings(false), {attribute}) ||
         one == only(neutralSettings(true), {attribute});
}

std::string changeText(const VfSettings& before, const VfSettings& after, Attribute attribute) {
  const bool changes = only(before, {attribute}) != VfSettings{} &&
                       only(before, {attribute}) != only(after, {attribute}) &&
                       !isNeutral(before, attribute);
  return std::string(toString(attribute)) + " " +
         (changes ? valueText(before, attribute) + " -> " : "") + valueText(after, attribute);
}

// The settings that the step's rollback gives to this VF.
VfSettings presentSettings(const Step& step, const PciAddress& pf, unsigned index) {
  for (const Action& action : step.undo) {
    const auto* configure = std::get_if<ConfigureVfs>(&action);
    if (configure == nullptr || configure->pf != pf) {
      continue;
    }
    const auto found = std::ranges::find(configure->vfs, index, &VfChange::index);
    if (found != configure->vfs.end()) {
      return found->settings;
    }
  }
  return {};
}

std::string changeText(const VfChange& change, const VfSettings& before) {
  std::vector<std::string> parts;
  for (const Attribute attribute : differingAttributes(change.settings, {})) {
    parts.push_back(changeText(before, change.settings, attribute));
  }
  return "VF " + std::to_string(change.index) + ": " + join(parts, ", ");
}

const VfSettings& settingsIn(const Lease& lease) {
  static const VfSettings none;
  return isVf(lease) ? vfOf(lease).settings : none;
}

std::string removalText(const VfSettings& before, Attribute attribute) {
  return std::string(toString(attribute)) + " " + valueText(before, attribute) + " -> not set";
}

std::vector<std::string> changedValues(const VfSettings& before, const VfSettings& after) {
  std::vector<std::string> parts;
  for (const Attribute attribute : differingAttributes(after, before)) {
    parts.push_back(changeText(before, after, attribute));
  }
  for (const Attribute attribute : differingAttributes(before, {})) {
    if (only(after, {attribute}) == VfSettings{}) {
      parts.push_back(removalText(before, attribute));
    }
  }
  return parts;
}

}  // namespace

const Lease* earlierLeaseOf(const Step& step) {
  const auto* record = std::get_if<RecordLease>(&step.action);
  for (const Action& action : step.undo) {
    const auto* earlier = std::get_if<RecordLease>(&action);
    if (record != nullptr && earlier != nullptr && earlier->lease.entry == record->lease.entry) {
      return &earlier->lease;
    }
  }
  return nullptr;
}

std::string updateText(const Lease& earlier, const Lease& lease) {
  std::vector<std::string> changes = changedValues(settingsIn(earlier), settingsIn(lease));
  std::string device = describeDevice(lease);
  if (describeDevice(earlier) != device) {
    device = describeDevice(earlier) + " -> " + device;
  }
  return lease.entry + " of " + device + (changes.empty() ? "" : ": " + join(changes, ", "));
}

std::string configurationText(const Step& step, const ConfigureVfs& configure) {
  std::vector<std::string> parts;
  for (const VfChange& change : configure.vfs) {
    parts.push_back(changeText(change, presentSettings(step, configure.pf, change.index)));
  }
  if (configure.otherwise) {
    parts.emplace_back(configure.vfs.empty() ? "neutral values for its new VFs"
                                             : "neutral values for all else of its new VFs");
  }
  return toString(configure.pf) + ", " + join(parts, "; ");
}

std::string stepText(const Step& step) {
  if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
    return "configure PF " + configurationText(step, *configure);
  }
  if (const Lease* earlier = earlierLeaseOf(step)) {
    const Lease& lease = std::get<RecordLease>(step.action).lease;
    return "update lease " + updateText(*earlier, lease) + " (" +
           std::string(toString(lease.state)) + ")";
  }
  return describe(step.action);
}

}  // namespace vfpass::report
