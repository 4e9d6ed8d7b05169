#include <algorithm>
#include <tuple>

#include "decide_lease.hpp"
#include "plan_settings.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {
namespace {

std::string valueDifference(const Lease& earlier, const Lease& wanted) {
  std::string text;
  const auto& [before, after] = std::pair(settingsOf(earlier), settingsOf(wanted));
  for (const Attribute attribute : differingAttributes(after, before)) {
    text += (text.empty() ? "" : ", ") + std::string(toString(attribute)) + " " +
            describe(after, attribute) + " instead of " + describe(before, attribute);
  }
  return text;
}

std::string difference(const Lease& earlier, const Lease& wanted) {
  if (!sameDevice(earlier, wanted) || isVf(earlier) != isVf(wanted)) {
    return describeDevice(wanted) + " instead of " + describeDevice(earlier);
  }
  if (vfioDriverOf(earlier) != vfioDriverOf(wanted)) {
    return "driver " + vfioDriverOf(wanted) + " instead of " + vfioDriverOf(earlier);
  }
  const std::string values = valueDifference(earlier, wanted);
  return values.empty() ? "different terms (required, allow, managed, interface or teaming)"
                        : values;
}

}  // namespace

std::vector<std::string> mappingDifferences(const AttachInput& input,
                                            const std::vector<Lease>& wanted) {
  std::vector<std::string> lines;
  for (Lease lease : wanted) {
    const Lease* earlier = earlierLease(input, lease.entry);
    if (earlier == nullptr) {
      lines.push_back(lease.entry + " is new; attach would add it");
      continue;
    }
    // The guest address and the configuration (persistent, live) depend on the command, not on the
    // mapping.
    lease.persistent = earlier->persistent;
    lease.guest = earlier->guest;
    lease.edits = earlier->edits;
    if (!sameTerms(*earlier, lease)) {
      lines.push_back(lease.entry + ": attach would set " + difference(*earlier, lease));
    }
  }
  if (const auto names = changedSettings(input, wanted); !names.empty()) {
    lines.push_back("domain settings: attach would change " + join(names, ", "));
  }
  for (const auto& lease : input.leases) {
    const auto isNamed = [&](const auto& entry) { return entry.name == lease.entry; };
    const auto& [vfs, gpus] = std::tie(input.mapping.vfs, input.mapping.functions);
    const bool named = std::any_of(vfs.begin(), vfs.end(), isNamed) ||
                       std::any_of(gpus.begin(), gpus.end(), isNamed);
    if (lease.domain == input.domain && !named) {
      lines.push_back(lease.entry + " is no longer in the mapping; attach would remove it");
    }
  }
  return lines;
}

}  // namespace vfpass::plan
