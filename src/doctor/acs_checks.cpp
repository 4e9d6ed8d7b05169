#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "check.hpp"
#include "config_space.hpp"
#include "distribution.hpp"
#include "firmware_remedies.hpp"
#include "vfpass/base/text.hpp"

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
constexpr std::string_view argumentName = "pci=config_acs=";

std::vector<std::size_t> portsAbove(const View& view, std::size_t number) {
  std::vector<std::size_t> ports;
  for (auto at = view.function(number).parent; at; at = view.function(*at).parent) {
    ports.push_back(*at);
  }
  return ports;
}

// A switch has ACS in its downstream ports, the root complex in its root ports.
bool controlsAccess(const Device& function) {
  return function.role == FunctionRole::downstreamPort || function.role == FunctionRole::rootPort;
}

using Patterns = std::map<std::size_t, std::string>;

// Like the kernel (pci_acs_flags_enabled), assumes that a port without the control bit behaves as
// if it were set. Direct translated is the exception: a port without it redirects such requests.
std::string possiblePattern(const View& view, std::size_t port, std::string pattern) {
  const auto acs = acsOf(readConfig(view.root(), view.function(port)));
  const std::string capable = acs ? acsText(acs->capable) : "";
  for (std::size_t bit = 1; bit < capable.size(); ++bit) {
    if (capable[bit] == '0' && pattern[bit] == '1') {
      pattern[bit] = 'x';
    }
  }
  return pattern;
}

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
  for (auto& [port, pattern] : patterns) {
    pattern = possiblePattern(view, port, pattern);
  }
  return patterns;
}

// The DMA function of NVIDIA's Direct NIC shares an IOMMU group with its GPU, on purpose; the rules
// for the ports above it are those of rdma-core's rdma_topo.
bool isBelowDirectNicPorts(const View& view, const topology::Rail& rail) {
  const auto patterns = patternsOf(view, rail);
  for (std::size_t number = 0; number < view.topology().functions.size(); ++number) {
    if (!isDirectNicDma(view.function(number))) {
      continue;
    }
    const auto ports = portsAbove(view, number);
    if (std::ranges::any_of(ports, [&](std::size_t port) { return patterns.contains(port); })) {
      return true;
    }
  }
  return false;
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
  std::erase_if(rails, [&](const auto& rail) { return isBelowDirectNicPorts(view, rail); });
  Patterns all;
  for (const auto& rail : rails) {
    for (const auto& [port, pattern] : patternsOf(view, rail)) {
      const auto [known, isNew] = all.emplace(port, pattern);
      if (!isNew && pattern.front() == nicPort.front()) {
        known->second = pattern;
      }
    }
  }
  return all;
}

// One argument for the whole host, because a second pci=config_acs= replaces the first. Ports
// without ACS have nothing to set.
std::vector<std::string> argumentParts(const View& view) {
  std::vector<std::string> parts;
  for (const auto& [port, pattern] : allPatterns(view)) {
    const std::string config = readConfig(view.root(), view.function(port));
    if (!hasExtendedSpace(config) || acsOf(config)) {
      parts.push_back(pattern + "@" + toString(view.function(port).address));
    }
  }
  return parts;
}

// What must hold before the argument is added: older kernels ignore it or set wrong bits.
std::string kernelNeededFor(const View& view, bool severalPorts) {
  const auto version = view.kernelVersion();
  const std::string running = version ? ", this is " + std::to_string(version->first) + "." +
                                            std::to_string(version->second)
                                      : "";
  if (!version || *version >= (severalPorts ? severalPortsSince : configAcsSince)) {
    return "";
  }
  return *version < configAcsSince
             ? std::string("needs Linux 6.11") + (severalPorts ? ", 6.15 for several ports" : "") +
                   running + ": boot a newer kernel, then "
             : "needs Linux 6.15, or commit 9cf8a952d57b, for several ports" + running +
                   ": check or change the kernel first, because without it the argument sets wrong "
                   "bits, then ";
}

std::string remedyFor(const View& view) {
  const auto parts = argumentParts(view);
  const std::string argument = std::string(argumentName) + join(parts, ";");
  const auto present = view.settings("proc/cmdline");
  if (std::ranges::find(present, argument) != present.end()) {
    return "the kernel command line has the right argument already: see `dmesg | grep -i acs`";
  }
  return kernelNeededFor(view, parts.size() > 1) + addKernelArgument(view, argument);
}

enum class Verdict { good, bad, impossible, unreadable };

Verdict judge(const View& view, std::size_t port, const std::string& wanted, std::string& seen) {
  const Device& function = view.function(port);
  const std::string config = readConfig(view.root(), function);
  seen = toString(function.address) + " ";
  if (!hasExtendedSpace(config)) {
    seen += "unreadable";
    return Verdict::unreadable;
  }
  const auto acs = acsOf(config);
  if (!acs) {
    seen += "has no ACS";
    return Verdict::impossible;
  }
  seen += acsText(acs->enabled);
  if (matchesAcs(acs->enabled, wanted)) {
    return Verdict::good;
  }
  seen += " for " + wanted;
  if (matchesAcs(acs->enabled, bareMetal)) {
    seen += " (the setting for bare metal)";
  }
  if (wanted.front() == '1' && acsText(acs->capable).front() == '0') {
    seen += " (the port supports only " + acsText(acs->capable) + ")";
    return Verdict::impossible;
  }
  return Verdict::bad;
}

std::string railName(const View& view, const topology::Rail& rail) {
  return toString(view.function(rail.gpu).address) + " with " + nameOf(view.function(*rail.pf));
}

/// The ports of one rail by verdict, as findings describe them.
using Verdicts = std::map<Verdict, std::vector<std::string>>;

Verdicts judge(const View& view, const topology::Rail& rail) {
  Verdicts verdicts;
  for (const auto& [port, pattern] : patternsOf(view, rail)) {
    std::string seen;
    const Verdict verdict = judge(view, port, pattern, seen);
    verdicts[verdict].push_back(seen);
  }
  return verdicts;
}

void checkAcs(const View& view, Results& results) {
  const std::string expected =
      "1x111x1 at the NIC's port of a shared switch, xx111x1 at the GPU's port and the root ports";
  std::string remedy = remedyFor(view);
  for (const auto& rail : view.rails()) {
    const std::string subject = railName(view, rail);
    if (isBelowDirectNicPorts(view, rail)) {
      results.notObservable(subject, expected, "other rules apply to the ports of a Direct NIC",
                            "rdma_topo check");
      continue;
    }
    Verdicts found = judge(view, rail);
    const bool settable = !found[Verdict::bad].empty();
    std::vector<std::string> faults = found[Verdict::bad];
    std::ranges::copy(found[Verdict::impossible], std::back_inserter(faults));
    if (settable) {
      results.failedIfUsed(view.uses(rail), subject, expected, join(faults, ", "), remedy);
      remedy = "add the argument shown for the first rail; it covers all rails";
    } else if (!faults.empty()) {
      results.failedIfUsed(view.uses(rail), subject, expected, join(faults, ", "),
                           "no setting changes these ports: use slots whose ports support it");
    } else if (const auto& unreadable = found[Verdict::unreadable]; !unreadable.empty()) {
      results.notObservable(subject, expected, join(unreadable, ", "), "sudo vfpass doctor");
    } else {
      const auto& good = found[Verdict::good];
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
    const Device& pf = view.function(number);
    const std::string config = readConfig(view.root(), pf);
    if (!sharesSwitchWithGpu(view, number)) {
      results.passed(nameOf(pf), expected, "not needed: no GPU shares a switch with it");
    } else if (!hasExtendedSpace(config)) {
      results.notObservable(nameOf(pf), expected, "cannot read its configuration space",
                            "sudo vfpass doctor");
    } else if (hasAts(config)) {
      results.passed(nameOf(pf), expected, "present");
    } else {
      results.failedIfUsed(
          sharesWithUsedGpu(view, number), nameOf(pf), expected,
          hasMlx5Firmware(pf.vendor, pf.driver) ? "disabled in the firmware" : "absent",
          atsRemedy(view, pf));
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

bool isDirectNicDma(const Device& function) {
  constexpr std::uint16_t directNicDma = 0x2100;
  return function.vendor == mellanox && function.device == directNicDma;
}

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
