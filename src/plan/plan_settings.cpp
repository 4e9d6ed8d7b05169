#include "attach_decisions.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

// The settings that a mapping requests by name.
constexpr std::array<std::string_view, 2> requestedSettings{"gpu-clique", "iommu-backend"};

std::vector<DomainEdit> earlierEdits(const AttachInput& input) {
  return editsOf(persistentLeases(input.leases, input.domain));
}

bool contains(const std::vector<DomainEdit>& edits, const DomainEdit& edit) {
  return std::ranges::find(edits, edit) != edits.end();
}

void keepEdits(const AttachInput& input, std::vector<Lease>& leases) {
  for (Lease& lease : leases) {
    const Lease* earlier = earlierLease(input, lease.entry);
    lease.edits = earlier == nullptr ? std::vector<DomainEdit>() : earlier->edits;
  }
}

// All edits go to the lease that had them, so that an attach without changes changes no lease.
void assignEdits(const AttachInput& input, std::vector<DomainEdit> edits,
                 std::vector<Lease>& leases) {
  Lease* carrier = nullptr;
  for (Lease& lease : leases) {
    lease.edits.clear();
    const Lease* earlier = earlierLease(input, lease.entry);
    const bool had = earlier != nullptr && !earlier->edits.empty();
    if (lease.persistent && (carrier == nullptr || had)) {
      carrier = &lease;
    }
  }
  if (carrier != nullptr) {
    carrier->edits = std::move(edits);
  }
}

}  // namespace

bool isApplied(const Mapping& mapping, const DomainSetting& setting) {
  return setting.edit &&
         (mapping.applyDomainSettings ||
          std::ranges::find(requestedSettings, setting.name) != requestedSettings.end());
}

void assignSettings(const AttachInput& input, AttachDecision& decision) {
  append(input.settingFaults, decision.objections);
  if (!input.scope.config) {
    return keepEdits(input, decision.leases);
  }
  std::vector<DomainEdit> edits;
  const auto earlier = earlierEdits(input);
  for (const DomainSetting& setting : input.settings) {
    if (isApplied(input.mapping, setting)) {
      edits.push_back(*setting.edit);
    }
    const bool made = isApplied(input.mapping, setting) && contains(earlier, *setting.edit);
    if (!made || !input.xmlCurrent) {
      decision.settings.push_back(setting);
    }
  }
  assignEdits(input, std::move(edits), decision.leases);
}

std::vector<std::string> changedSettings(const AttachInput& input,
                                         const std::vector<Lease>& wanted) {
  if (wanted.empty()) {
    return {};  // no lease was decided
  }
  const auto before = earlierEdits(input);
  const auto after = editsOf(wanted);
  std::set<std::string> names;
  for (const DomainEdit& edit : before) {
    if (!contains(after, edit)) {
      names.insert(edit.setting);
    }
  }
  for (const DomainEdit& edit : after) {
    if (!contains(before, edit)) {
      names.insert(edit.setting);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace vfpass::plan
