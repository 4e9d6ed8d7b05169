#include "step_groups.hpp"

#include <optional>

#include "step_text.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
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
