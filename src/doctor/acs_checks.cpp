#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "acs_rules.hpp"
#include "check.hpp"
#include "config_space.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

// For bare metal redirection is off, which merges IOMMU groups.
constexpr std::string_view bareMetal = "xx000x0";
constexpr const char* expectation =
    "1x111x1 at the NIC's port of a shared switch, xx111x1 at the GPU's port and the root ports";
constexpr const char* otherSlots =
    "no setting changes these ports: use slots whose ports support it";
constexpr const char* groupsDecide = "vfpass doctor  # iommu-group says whether they are isolated";

enum class Verdict {
  good,
  bad,
  indirect,    ///< isolates, but cannot forward translated requests directly
  withoutAcs,  ///< has no ACS capability
  unreadable
};

/// The ports of one rail by verdict, as findings describe them.
using Verdicts = std::map<Verdict, std::vector<std::string>>;

Verdict judge(const View& view, std::size_t port, const PortRule& rule, std::string& seen) {
  const Device& function = view.function(port);
  const std::string& config = view.config(function);
  seen = toString(function.address) + " ";
  if (!hasExtendedSpace(config)) {
    seen += "unreadable";
    return Verdict::unreadable;
  }
  const auto acs = acsOf(config);
  if (!acs) {
    seen += "has no ACS";
    return Verdict::withoutAcs;
  }
  seen += acsText(acs->enabled);
  if (!matchesAcs(acs->enabled, rule.pattern)) {
    seen += " for " + rule.pattern;
    seen += matchesAcs(acs->enabled, bareMetal) ? " (the setting for bare metal)" : "";
    return Verdict::bad;
  }
  if (rule.turnsRequests && rule.pattern.front() != directPort.front()) {
    seen += " without direct translated (the port supports only " + acsText(acs->capable) + ")";
    return Verdict::indirect;
  }
  return Verdict::good;
}

Verdicts judge(const View& view, const RailRules& rules) {
  Verdicts verdicts;
  for (const auto& [port, rule] : rules.ports) {
    std::string seen;
    const Verdict verdict = judge(view, port, rule, seen);
    // Where requests turn, no quirk of the kernel replaces the control bit.
    verdicts[verdict == Verdict::withoutAcs && rule.turnsRequests ? Verdict::indirect : verdict]
        .push_back(seen);
  }
  return verdicts;
}

std::string railName(const View& view, const topology::Rail& rail) {
  return toString(view.function(rail.gpu).address) + " with " + nameOf(view.function(*rail.pf));
}

// Whether the kernel keeps the GPU and the NIC's VFs apart from everything else. It also does for
// ports without ACS that it knows to isolate (drivers/pci/quirks.c, pci_dev_acs_enabled). nullopt:
// there are no groups, or no VFs yet.
std::optional<bool> isIsolatedByKernel(const View& view, const topology::Rail& rail) {
  auto isolated = isAloneInGroup(view, rail.gpu);
  bool hasVfs = false;
  for (std::size_t number = 0; number < view.topology().functions.size(); ++number) {
    if (isolated == true &&
        view.function(number).physicalFunction == view.function(*rail.pf).address) {
      isolated = isAloneInGroup(view, number);
      hasVfs = true;
    }
  }
  return isolated == true && !hasVfs ? std::nullopt : isolated;
}

// A Direct NIC is set up as rdma_topo requires, or rdma_topo has to say what is missing: our
// argument would undo settings of its ports.
void reportDirectNic(const View& view, const RailRules& rules, const std::string& subject,
                     Results& results) {
  Verdicts found = judge(view, rules);
  const std::vector<std::string> good = found[Verdict::good];
  if (rules.notJudged.empty() && good.size() == rules.ports.size()) {
    results.passed(subject, "as rdma_topo requires for a Direct NIC", join(good, ", "));
    return;
  }
  std::vector<std::string> seen;
  for (const auto& [verdict, ports] : found) {
    if (verdict != Verdict::good) {
      std::ranges::copy(ports, std::back_inserter(seen));
    }
  }
  results.notObservable(
      subject, "as rdma_topo requires for a Direct NIC",
      "not judged here: use rdma_topo" +
          (rules.notJudged.empty() ? "; " + join(seen, ", ") : " (" + rules.notJudged + ")"),
      "rdma_topo check");
}

void reportWithoutAcs(const View& view, const topology::Rail& rail, const std::string& seen,
                      Results& results) {
  const std::string subject = railName(view, rail);
  const auto isolated = isIsolatedByKernel(view, rail);
  if (isolated == false) {
    results.failedIfUsed(view.uses(rail), subject, expectation, seen, otherSlots);
  } else {
    results.notObservable(
        subject, expectation,
        seen + (isolated ? "; the kernel isolates the devices all the same" : "; not judged here"),
        groupsDecide);
  }
}

void report(const View& view, const topology::Rail& rail, Verdicts found, std::string& remedy,
            Results& results) {
  const std::string subject = railName(view, rail);
  std::vector<std::string> faults = found[Verdict::bad];
  for (const Verdict verdict : {Verdict::withoutAcs, Verdict::indirect}) {
    std::ranges::copy(found[verdict], std::back_inserter(faults));
  }
  if (!found[Verdict::bad].empty()) {
    results.failedIfUsed(view.uses(rail), subject, expectation, join(faults, ", "), remedy);
    remedy = "add the argument shown for the first rail; it covers all rails";
  } else if (!found[Verdict::withoutAcs].empty()) {
    reportWithoutAcs(view, rail, join(faults, ", "), results);
  } else if (const auto& unreadable = found[Verdict::unreadable]; !unreadable.empty()) {
    results.notObservable(subject, expectation, join(unreadable, ", "), "sudo vfpass doctor");
  } else if (!found[Verdict::indirect].empty()) {
    results.warned(subject, expectation, join(faults, ", "), otherSlots);
  } else {
    results.passed(subject, expectation, join(found[Verdict::good], ", "));
  }
}

void checkAcs(const View& view, Results& results) {
  std::string remedy = acsRemedy(view);
  for (const auto& rail : view.rails()) {
    const std::string subject = railName(view, rail);
    const RailRules rules = acsRulesOf(view, rail);
    if (rules.directNic) {
      reportDirectNic(view, rules, subject, results);
    } else if (!rules.notJudged.empty()) {
      results.notObservable(subject, expectation, "not judged here: " + rules.notJudged,
                            groupsDecide);
    } else {
      report(view, rail, judge(view, rules), remedy, results);
    }
  }
}

constexpr std::array acsTable{
    Check{
        "ats",
        "below one switch, only requests translated by ATS can go from the NIC straight to the GPU",
        withoutRail, checkAts},
    Check{"vf-ats", "a guest's NIC is a VF, which has an ATS setting of its own", withoutRail,
          checkVfAts},
    Check{"acs",
          "the ports between GPU and NIC decide whether their traffic is isolated and direct",
          withoutRail, checkAcs}};

}  // namespace

std::span<const Check> acsChecks() { return acsTable; }

}  // namespace vfpass::doctor
