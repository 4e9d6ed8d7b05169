#include <algorithm>
#include <iterator>
#include <tuple>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/judge_confidential_guest.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

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
  if (!isForSameDevice(earlier, wanted)) {
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

std::vector<std::string> mappingDifferences(const AttachInput& given,
                                            const std::vector<Lease>& wanted) {
  const auto renamed = withRenames(given);
  const AttachInput& input = renamed ? *renamed : given;
  std::vector<std::string> lines;
  for (const auto& [entry, recorded] : input.renamed) {
    lines.push_back(recorded + " is called " + entry + " in the mapping; attach would rename it" +
                    (input.active ? " once the guest is shut down" : ""));
  }
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
    const auto& [vfs, functions] = std::tie(input.mapping.vfs, input.mapping.functions);
    const bool named = std::ranges::any_of(vfs, isNamed) || std::ranges::any_of(functions, isNamed);
    if (lease.domain == input.domain && !named) {
      lines.push_back(lease.entry + " is no longer in the mapping; attach would remove it");
    }
  }
  return lines;
}

namespace {

std::string resetOf(const Device& function) {
  if (!function.resetMethods) {
    return "reset methods unknown";
  }
  if (!function.resetMethods->empty()) {
    return "reset " + join(*function.resetMethods, ", ");
  }
  return function.busPeers.empty()
             ? "cannot be reset: the next guest could read data left by this one"
             : "reset with its bus";
}

std::string driverOf(const Device& function, const MappedFunction& entry) {
  const std::string driver = entry.driver.value_or(function.vfioDriver);
  return driver == function.vfioDriver
             ? driver
             : driver + " (" + function.vfioDriver + " is a better match)";
}

}  // namespace

std::vector<std::string> describeDevices(const AttachInput& input) {
  std::vector<std::string> lines;
  for (const auto& entry : input.mapping.functions) {
    if (const Device* function = findFunction(input.inventory, entry.pci)) {
      lines.push_back(entry.name + ": driver " + driverOf(*function, entry) + ", " +
                      resetOf(*function));
    }
  }
  const std::string nvlink = topology::judgeNvlink(input.topology, input.mapping).summary;
  if (!nvlink.empty()) {
    lines.push_back(nvlink);
  }
  if (std::string partition = partitionNote(input); !partition.empty()) {
    lines.push_back(std::move(partition));
  }
  if (const auto confidential = judgeConfidentialGuest(input)) {
    std::ranges::move(describe(*confidential), std::back_inserter(lines));
  }
  return lines;
}

std::vector<std::string> unreadOriginals(const AttachInput& input,
                                         const std::vector<Lease>& leases) {
  std::vector<std::string> notes;
  for (const auto& lease : leases) {
    const VirtualFunction* vf = findVf(input.inventory, lease);
    if (vf == nullptr || lease.original.settings != VfSettings{}) {
      continue;
    }
    const std::string subject =
        lease.entry + ": VF " + std::to_string(vf->index) + " of PF " + toString(lease.pf);
    if (isLeftover(*vf, lease)) {
      notes.push_back(subject +
                      " still has what an earlier attach had set, whose record was lost with the "
                      "state database; detach will set neutral values and bind it to " +
                      printable(lease.original.driver));
    } else if (!lease.original.created && !vf->settingsReadable &&
               !findPf(input.inventory, lease.pf)->reportsNoVfs) {
      notes.push_back(subject +
                      ": its attributes cannot be read; detach will set neutral values instead "
                      "of restoring them");
    }
  }
  return notes;
}

}  // namespace vfpass::plan
