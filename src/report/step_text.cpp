#include "step_text.hpp"

#include <algorithm>
#include <optional>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/vf_attributes.hpp"

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
  std::vector<std::string> changes = changedValues(settingsOf(earlier), settingsOf(lease));
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

namespace {

// The place of a step among others of its kind.
struct Member {
  std::string before;  // `bind `
  std::string thing;   // `device`, in the singular
  std::string after;   // ` to vfio-pci`
  std::string item;    // `0000:01:00.2`
  bool isShort = true;

  [[nodiscard]] bool isAlike(const Member& other) const {
    return before == other.before && thing == other.thing && after == other.after;
  }
};

std::string leasedAs(const Lease& lease) { return describeDevice(lease) + " as " + lease.entry; }

std::string pluggedAs(const Lease& lease) {
  return lease.entry + " (" + describeDevice(lease) + ")";
}

Member leaseMember(const Step& step, const RecordLease& record) {
  const std::string state = " (" + std::string(toString(record.lease.state)) + ")";
  if (const Lease* earlier = earlierLeaseOf(step)) {
    return {"update ", "lease", state, updateText(*earlier, record.lease), false};
  }
  return {"lease ", "device", state, leasedAs(record.lease), false};
}

Member bindMember(const BindDriver& bind) {
  const std::string address = toString(bind.function);
  return bind.driver.empty() ? Member{"unbind ", "device", " from the driver", address}
                             : Member{"bind ", "device", " to " + bind.driver, address};
}

Member creationMember(const CreateVfs& create) {
  return {"create VFs on ", "PF", create.probe ? "" : ", not probed by the host driver",
          toString(create.pf) + " (" + std::to_string(create.count) + ")"};
}

// nullopt: a step of this kind is always shown alone.
std::optional<Member> memberOf(const Step& step) {
  using Found = std::optional<Member>;
  return std::visit(
      Overloaded{
          [&](const RecordLease& record) { return Found(leaseMember(step, record)); },
          [](const DropLease& drop) {
            return Found({"delete ", "lease", "", drop.entry});
          },
          [&](const ConfigureVfs& configure) {
            return Found({"configure ", "PF", "", configurationText(step, configure), false});
          },
          [](const BindDriver& bind) { return Found(bindMember(bind)); },
          [](const ResetFunction& reset) {
            return Found({"reset ", "device", "", toString(reset.function)});
          },
          [](const CreateVfs& create) { return Found(creationMember(create)); },
          [](const PlugDevice& plug) {
            return Found({"plug ", "device", " into the running domain", pluggedAs(plug.lease)});
          },
          [](const UnplugDevice& unplug) {
            return Found(
                {"unplug ", "device", " from the running domain", pluggedAs(unplug.lease)});
          },
          [](const auto&) { return Found(); }},
      step.action);
}

// Steps that may share a group, and what they have in common.
struct OpenGroup {
  std::optional<Member> first;
  std::vector<std::string> items;
  StepGroup group;

  [[nodiscard]] bool accepts(const std::optional<Member>& member, const Step& step) const {
    return first && member && first->isAlike(*member) && group.first->reason == step.reason &&
           group.first->disrupts == step.disrupts;
  }
};

bool isSameKind(const OpenGroup& open, const std::optional<Member>& member) {
  return open.first && member && open.first->before == member->before;
}

StepGroup close(OpenGroup open) {
  StepGroup group = std::move(open.group);
  if (open.items.size() > 1) {
    const Member& first = *open.first;
    group.text = printable(first.before + counted(open.items.size(), first.thing) + first.after) +
                 ":" + (first.isShort ? " " + printable(join(open.items, ", ")) : "");
    if (!first.isShort) {
      for (const std::string& item : open.items) {
        group.items.push_back(printable(item));
      }
    }
  }
  return group;
}

void closeAll(std::vector<OpenGroup>& open, std::vector<StepGroup>& groups) {
  for (OpenGroup& each : open) {
    groups.push_back(close(std::move(each)));
  }
  open.clear();
}

void insert(std::vector<OpenGroup>& open, const Step& step, std::optional<Member> member,
            std::size_t number) {
  for (OpenGroup& each : open) {
    if (each.accepts(member, step)) {
      each.group.numbers.push_back(number);
      each.items.push_back(member->item);
      return;
    }
  }
  const std::string item = member ? member->item : "";
  open.push_back({std::move(member), {item}, {{number}, printable(stepText(step)), {}, &step}});
}

}  // namespace

std::vector<StepGroup> groupSteps(const std::vector<Step>& steps) {
  std::vector<StepGroup> groups;
  std::vector<OpenGroup> open;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto member = memberOf(steps[i]);
    if (!open.empty() && !isSameKind(open.front(), member)) {
      closeAll(open, groups);
    }
    insert(open, steps[i], std::move(member), i + 1);
  }
  closeAll(open, groups);
  return groups;
}

std::string rangesOf(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    ranges.push_back(std::to_string(numbers[i]) +
                     (last == i ? "" : "-" + std::to_string(numbers[last])));
    i = last + 1;
  }
  return join(ranges, ", ");
}

}  // namespace vfpass::report
