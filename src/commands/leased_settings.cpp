#include "drift.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/text.hpp"

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
