#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "check.hpp"
#include "config_space.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/sysfs_folder.hpp"

namespace vfpass::doctor {
namespace {

// For guests whose GPU and NIC share a switch: the NIC's port forwards translated requests
// directly, all other requests go through the IOMMU. Bare metal disables redirection instead
// (xx000x0), which merges IOMMU groups.
constexpr std::string_view nicPort = "1x111x1";
constexpr std::string_view otherPort = "xx111x1";
constexpr std::string_view bareMetal = "xx000x0";
// 47c8846a49ba added config_acs=. Without 9cf8a952d57b (also in 6.12.y since April 2025) an
// argument for several ports sets wrong bits.
constexpr std::pair configAcsSince{6U, 11U};
constexpr std::pair severalPortsSince{6U, 15U};

std::string configOf(const View& view, const TopologyFunction& function) {
  const host::Folder folder(view.root(), "sys/devices/" + function.path);
  return folder ? folder.readBytes("config", 0, 4096) : "";
}

std::vector<std::size_t> portsAbove(const View& view, std::size_t number) {
  std::vector<std::size_t> ports;
  for (auto at = view.function(number).parent; at; at = view.function(*at).parent) {
    ports.push_back(*at);
  }
  return ports;
}

// A switch has ACS in its downstream ports, the root complex in its root ports.
bool controlsAccess(const TopologyFunction& function) {
  return function.role == FunctionRole::downstreamPort || function.role == FunctionRole::rootPort;
}

using Patterns = std::map<std::size_t, std::string_view>;

// The NIC's ports below the first bridge common to both forward translated requests directly.
Patterns patternsOf(const View& view, const topology::Rail& rail) {
  const auto gpuPorts = portsAbove(view, rail.gpu);
  const auto nicPorts = portsAbove(view, *rail.pf);
  const auto shared = std::ranges::find_first_of(nicPorts, gpuPorts);
  Patterns patterns;
  for (const std::size_t port : gpuPorts) {
    patterns.emplace(port, otherPort);
  }
  for (auto port = nicPorts.begin(); port != nicPorts.end(); ++port) {
    patterns.emplace(*port, shared != nicPorts.end() && port < shared ? nicPort : otherPort);
  }
  std::erase_if(patterns,
                [&](const auto& each) { return !controlsAccess(view.function(each.first)); });
  return patterns;
}

// Covers all rails of the host even if only one VM is examined, so that the remedy keeps the
// settings of the others. If two rails share a port, the stricter pattern applies.
Patterns allPatterns(const View& view) {
  std::vector<topology::Rail> rails = view.rails();
  for (const auto& rail : topology::rails(view.topology())) {
    if (rail.pf) {
      rails.push_back(rail);
    }
  }
  Patterns all;
  for (const auto& rail : rails) {
    for (const auto& [port, pattern] : patternsOf(view, rail)) {
      const auto [known, isNew] = all.emplace(port, pattern);
      if (!isNew && pattern == nicPort) {
        known->second = nicPort;
      }
    }
  }
  return all;
}

// One argument for the whole host, because a second pci=config_acs= replaces the first.
std::string remedyFor(const View& view) {
  std::vector<std::string> parts;
  for (const auto& [port, pattern] : allPatterns(view)) {
    parts.push_back(std::string(pattern) + "@" + toString(view.function(port).address));
  }
  std::string old;
  if (const auto version = view.kernelVersion(); version && *version < severalPortsSince) {
    const bool unknown = *version < configAcsSince;
    old = unknown || parts.size() > 1
              ? std::string(" (needs Linux ") +
                    (unknown ? "6.11" : "6.15, or commit 9cf8a952d57b, for several ports") +
                    ", this is " + std::to_string(version->first) + "." +
                    std::to_string(version->second) + ")"
              : "";
  }
  return "add to the kernel command line, then reboot: \"pci=config_acs=" + join(parts, ";") +
         "\"" + old;
}

enum class Verdict { good, bad, unreadable };

Verdict judge(const View& view, std::size_t port, std::string_view pattern, std::string& seen) {
  const TopologyFunction& function = view.function(port);
  const std::string config = configOf(view, function);
  seen = toString(function.address) + " ";
  if (!hasExtendedSpace(config)) {
    seen += "unreadable";
    return Verdict::unreadable;
  }
  const auto acs = acsOf(config);
  if (!acs) {
    seen += "has no ACS";
    return Verdict::bad;
  }
  const std::string wanted(pattern);
  seen += acsText(acs->enabled);
  if (matchesAcs(acs->enabled, pattern)) {
    return Verdict::good;
  }
  seen += " for " + wanted;
  if (matchesAcs(acs->enabled, bareMetal)) {
    seen += " (the setting for bare metal)";
  }
  const auto firstMissing = wanted.find('1');
  for (auto bit = firstMissing; bit != std::string::npos; bit = wanted.find('1', bit + 1)) {
    if (acsText(acs->capable)[bit] == '0') {
      seen += " (the port supports only " + acsText(acs->capable) + ")";
      break;
    }
  }
  return Verdict::bad;
}

std::string railName(const View& view, const topology::Rail& rail) {
  return toString(view.function(rail.gpu).address) + " with " + nameOf(view.function(*rail.pf));
}

void checkAcs(const View& view, Results& results) {
  const std::string expected =
      "1x111x1 at the NIC's port of a shared switch, xx111x1 at the GPU's port and the root ports";
  std::string remedy = remedyFor(view);
  for (const auto& rail : view.rails()) {
    std::vector<std::string> good;
    std::vector<std::string> bad;
    std::vector<std::string> unreadable;
    for (const auto& [port, pattern] : patternsOf(view, rail)) {
      std::string seen;
      const Verdict verdict = judge(view, port, pattern, seen);
      auto& list = verdict == Verdict::good ? good : verdict == Verdict::bad ? bad : unreadable;
      list.push_back(seen);
    }
    const std::string subject = railName(view, rail);
    if (!bad.empty()) {
      results.failedIfUsed(view.uses(rail), subject, expected, join(bad, ", "), remedy);
      remedy = "add the argument shown for the first rail; it covers all rails";
    } else if (!unreadable.empty()) {
      results.notObservable(subject, expected, join(unreadable, ", "), "sudo vfpass doctor");
    } else {
      results.passed(subject, expected, good.empty() ? "no ports between them" : join(good, ", "));
    }
  }
}

// The PFs of rails, and used PFs that are not the nearest of any GPU.
std::set<std::size_t> pairedPfs(const View& view) {
  std::set<std::size_t> found;
  for (const auto& rail : view.rails()) {
    found.insert(*rail.pf);
  }
  std::ranges::copy_if(view.pfs(), std::inserter(found, found.end()),
                       [&](std::size_t pf) { return view.namesDevices() && view.uses(pf); });
  return found;
}

bool sharesWithUsedGpu(const View& view, std::size_t pf) {
  return view.uses(pf) && std::ranges::any_of(view.gpus(), [&](std::size_t gpu) {
           return view.uses(gpu) && sharesSwitch(view, gpu, pf);
         });
}

// Between devices without a common switch all requests pass the root complex, where the IOMMU
// translates them. There is nothing that ATS could spare.
void checkAts(const View& view, Results& results) {
  const std::string expected = "the ATS capability, if a GPU shares a switch with the NIC";
  for (const std::size_t number : pairedPfs(view)) {
    const TopologyFunction& pf = view.function(number);
    const std::string config = configOf(view, pf);
    if (!sharesSwitchWithGpu(view, number)) {
      results.passed(nameOf(pf), expected, "not needed: no GPU shares a switch with it");
    } else if (!hasExtendedSpace(config)) {
      results.notObservable(nameOf(pf), expected, "cannot read its configuration space",
                            "sudo vfpass doctor");
    } else if (hasAts(config)) {
      results.passed(nameOf(pf), expected, "present");
    } else {
      results.failedIfUsed(
          sharesWithUsedGpu(view, number), nameOf(pf), expected, "disabled in the firmware",
          "mstconfig -d " + toString(pf.address) + " set ATS_ENABLED=1, then reboot");
    }
  }
}

constexpr std::array checks{
    Check{
        "ats",
        "below one switch, only requests translated by ATS can go from the NIC straight to the GPU",
        withoutRail, checkAts},
    Check{"acs",
          "the ports between GPU and NIC decide whether their traffic is isolated and direct",
          withoutRail, checkAcs}};

}  // namespace

// A root port has one link, so only a multi-function card could have two devices directly below it.
bool sharesSwitch(const View& view, std::size_t gpu, std::size_t pf) {
  const auto gpuPorts = portsAbove(view, gpu);
  const auto nicPorts = portsAbove(view, pf);
  const auto shared = std::ranges::find_first_of(nicPorts, gpuPorts);
  return shared != nicPorts.end() && view.function(*shared).role != FunctionRole::rootPort;
}

bool sharesSwitchWithGpu(const View& view, std::size_t pf) {
  return std::ranges::any_of(view.gpus(),
                             [&](std::size_t gpu) { return sharesSwitch(view, gpu, pf); });
}

bool needsAts(const View& view, std::size_t pf) {
  return pairedPfs(view).contains(pf) && sharesSwitchWithGpu(view, pf);
}

std::span<const Check> acsChecks() { return checks; }

}  // namespace vfpass::doctor
