#include "acs_rules.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "check.hpp"
#include "config_space.hpp"
#include "remedies.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

std::vector<std::size_t> portsAbove(const View& view, std::size_t number) {
  std::vector<std::size_t> ports;
  for (auto at = view.function(number).parent; at; at = view.function(*at).parent) {
    ports.push_back(*at);
  }
  return ports;
}

bool contains(const std::vector<std::size_t>& numbers, std::size_t number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

// A switch has ACS in its downstream ports, the root complex in its root ports. rdma_topo also
// looks at upstream ports with the capability; the kernel does not need it there, because no
// request turns in one (pci_acs_enabled).
bool controlsAccess(const Device& function) {
  return function.role == FunctionRole::downstreamPort || function.role == FunctionRole::rootPort;
}

template <std::size_t Count>
bool isOneOf(const Device& function, std::uint16_t vendor,
             const std::array<std::uint16_t, Count>& devices) {
  return function.vendor == vendor && std::ranges::find(devices, function.device) != devices.end();
}

// The types of rdma_topo's table pci_device_types.
bool isGraceRootPort(const Device& function) {
  return isOneOf<3>(function, nvidia, {0x22b1, 0x22b2, 0x22b8});
}
bool isVeraRootPort(const Device& function) {
  return isOneOf<2>(function, nvidia, {0x2f95, 0x2f96});
}
bool isConnectXSwitch(const Device& function) {
  return isOneOf<2>(function, mellanox, {0x1979, 0x197c});
}

// Like the kernel (pci_acs_flags_enabled), assumes that a port without the control bit behaves as
// if it were set. Vera's root ports have completion redirect read-only and disabled: rdma_topo
// requires a 0 there, which nothing can change, so any value will do.
std::string possiblePattern(const View& view, std::size_t port, std::string_view wanted) {
  constexpr std::size_t completionRedirect = 3;
  std::string pattern(wanted);
  const Device& function = view.function(port);
  const auto acs = acsOf(view.config(function));
  const std::string capable = acs ? acsText(acs->capable) : "";
  for (std::size_t bit = 0; bit < capable.size(); ++bit) {
    if (capable[bit] == '0' && pattern[bit] == '1') {
      pattern[bit] = 'x';
    }
  }
  if (isVeraRootPort(function)) {
    pattern[completionRedirect] = 'x';
  }
  return pattern;
}

// `pci0000:00/0000:00:0e.0/pci10000:e0/...`: the VMD's own root bus is below one of its functions.
bool isBehindVmd(const Device& function) {
  const auto bridge = function.path.rfind("/pci");
  if (bridge == std::string::npos) {
    return false;
  }
  const auto slash = function.path.rfind('/', bridge - 1);
  const auto begin = slash == std::string::npos ? 0 : slash + 1;
  return bridge > begin &&
         parsePciAddress(std::string_view(function.path).substr(begin, bridge - begin)).has_value();
}

std::string whyNotJudged(const View& view, const topology::Rail& rail,
                         const std::vector<std::size_t>& above) {
  for (const std::size_t device : {rail.gpu, *rail.pf}) {
    if (isBehindVmd(view.function(device))) {
      return toString(view.function(device).address) +
             " is behind an Intel VMD, for which all devices below it are one";
    }
  }
  const auto bridge = std::ranges::find_if(above, [&](std::size_t number) {
    const Device& port = view.function(number);
    return port.role == FunctionRole::bridge || isConventionalBridge(view.config(port));
  });
  if (bridge != above.end()) {
    return toString(view.function(*bridge).address) +
           " above them is a conventional PCI bridge, or a port of unknown type";
  }
  return std::ranges::none_of(above,
                              [&](std::size_t port) { return controlsAccess(view.function(port)); })
             ? "no port is above them, whose setting could isolate them"
             : "";
}

// A switch with one downstream port, as on some cards (AMD's 1002:1478 and 1479): no request can
// turn in it, so it needs no ACS, which it often lacks.
bool isOnlyPort(const View& view, std::size_t port) {
  const Device& only = view.function(port);
  return only.role == FunctionRole::downstreamPort && only.parent &&
         std::ranges::count(view.topology().functions, only.parent, &Device::parent) == 1;
}

bool needsNoAcs(const View& view, std::size_t port) {
  const std::string& config = view.config(view.function(port));
  return isOnlyPort(view, port) && hasExtendedSpace(config) && !acsOf(config);
}

// Only the port where requests from NIC to GPU turn, directly below the first bridge common to
// both, forwards translated requests directly: in ports further down they go up in any case.
RailRules rulesBySwitch(const View& view, const topology::Rail& rail) {
  const auto gpuPorts = portsAbove(view, rail.gpu);
  auto above = portsAbove(view, *rail.pf);
  const auto shared = std::ranges::find_first_of(above, gpuPorts);
  const bool hasTurn = shared != above.end() && shared != above.begin();
  const std::size_t turn = hasTurn ? *std::prev(shared) : *rail.pf;
  std::ranges::copy(gpuPorts, std::back_inserter(above));
  RailRules rules;
  rules.notJudged = whyNotJudged(view, rail, above);
  for (const std::size_t port : above) {
    if (controlsAccess(view.function(port)) && !needsNoAcs(view, port)) {
      const bool turns = port == turn && canHaveAts(view, view.function(*rail.pf));
      rules.ports[port] = {possiblePattern(view, port, turns ? directPort : isolatingPort), turns};
    }
  }
  return rules;
}

// The only shape that rdma_topo accepts (__get_nvcx_complex):
//   Grace's root port - upstream - downstream - DMA function
//                                - downstream - upstream - downstream - GPU
bool hasDirectNicShape(const View& view, const std::vector<std::size_t>& dmaPorts,
                       const std::vector<std::size_t>& gpuPorts) {
  constexpr std::size_t dmaDepth = 3;
  constexpr std::size_t gpuDepth = 5;
  const auto isKnown = [&](std::size_t port) {
    const Device& function = view.function(port);
    return function.role == FunctionRole::rootPort ? isGraceRootPort(function)
                                                   : isConnectXSwitch(function);
  };
  return dmaPorts.size() == dmaDepth && gpuPorts.size() == gpuDepth &&
         std::equal(dmaPorts.end() - 2, dmaPorts.end(), gpuPorts.end() - 2) &&
         view.function(dmaPorts.back()).role == FunctionRole::rootPort &&
         std::ranges::all_of(dmaPorts, isKnown) && std::ranges::all_of(gpuPorts, isKnown);
}

// NVCX_DMA_Complex.compute_acs. Without source validation in the root port the kernel puts all
// below it into one group.
RailRules rulesOfDirectNic(const View& view, const topology::Rail& rail, std::size_t dma) {
  const auto dmaPorts = portsAbove(view, dma);
  const auto gpuPorts = portsAbove(view, rail.gpu);
  const auto nicPorts = portsAbove(view, *rail.pf);
  RailRules rules;
  rules.directNic = true;
  const bool meetsNic =
      std::ranges::any_of(nicPorts, [&](std::size_t port) { return contains(gpuPorts, port); });
  if (meetsNic || !hasDirectNicShape(view, dmaPorts, gpuPorts)) {
    rules.notJudged = "the ports of a Direct NIC have rules of their own";
    return rules;
  }
  for (const auto* ports : {&nicPorts, &gpuPorts}) {
    for (const std::size_t port : *ports) {
      if (controlsAccess(view.function(port))) {
        rules.ports[port] = {possiblePattern(view, port, isolatingPort), false};
      }
    }
  }
  rules.ports[dmaPorts.front()] = {"xx110x1", false};
  rules.ports[*(gpuPorts.end() - 3)] = {"xx101x1", false};
  rules.ports[dmaPorts.back()] = {"xx111x0", false};
  return rules;
}

// A DMA function below one of these ports.
std::optional<std::size_t> directNicBelow(const View& view, const std::vector<std::size_t>& ports) {
  for (std::size_t number = 0; number < view.topology().functions.size(); ++number) {
    const auto sharesPort = [&](std::size_t port) { return contains(ports, port); };
    if (isDirectNicDma(view.function(number)) &&
        std::ranges::any_of(portsAbove(view, number), sharesPort)) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace

RailRules acsRulesOf(const View& view, const topology::Rail& rail) {
  auto ports = portsAbove(view, rail.gpu);
  std::ranges::copy(portsAbove(view, *rail.pf), std::back_inserter(ports));
  const auto dma = directNicBelow(view, ports);
  return dma ? rulesOfDirectNic(view, rail, *dma) : rulesBySwitch(view, rail);
}

std::optional<std::size_t> directNicOf(const View& view, std::size_t gpu) {
  return directNicBelow(view, portsAbove(view, gpu));
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

namespace {

// 47c8846a49ba added config_acs=. Without 9cf8a952d57b (also in 6.12.y since April 2025) an
// argument for several ports sets wrong bits.
constexpr std::pair configAcsSince{6U, 11U};
constexpr std::pair severalPortsSince{6U, 15U};
constexpr std::string_view optionName = "config_acs=";

using Patterns = std::map<std::size_t, std::string>;

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
    const RailRules rules = acsRulesOf(view, rail);
    if (rules.directNic || !rules.notJudged.empty()) {
      continue;
    }
    for (const auto& [port, rule] : rules.ports) {
      const auto [known, isNew] = all.emplace(port, rule.pattern);
      if (!isNew && rule.pattern.front() == directPort.front()) {
        known->second = rule.pattern;
      }
    }
  }
  return all;
}

// Ports without ACS have nothing to set.
std::vector<std::string> ownParts(const View& view) {
  std::vector<std::string> parts;
  for (const auto& [port, pattern] : allPatterns(view)) {
    const std::string& config = view.config(view.function(port));
    if (!hasExtendedSpace(config) || acsOf(config)) {
      parts.push_back(pattern + "@" + toString(view.function(port).address));
    }
  }
  return parts;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(trim(text.substr(start, end - start)));
    start = end + 1;
  }
  return parts;
}

// Bits, `@`, and a port as pci_dev_str_match takes it, here without anything special to a shell.
bool isPart(const std::string& text) {
  const auto at = text.find('@');
  return at != std::string::npos && text.find_first_not_of("01x") == at &&
         text.find_first_not_of("0123456789abcdefABCDEFpci:./", at + 1) == std::string::npos;
}

std::string portOf(const std::string& part) { return part.substr(part.find('@') + 1); }

// Those of the running kernel. `pci=` takes several options, and the last `config_acs=` counts.
std::vector<std::string> presentParts(const View& view) {
  std::vector<std::string> parts;
  for (const std::string& word : view.settings("proc/cmdline")) {
    if (!word.starts_with("pci=")) {
      continue;
    }
    for (const std::string& option : split(std::string_view(word).substr(4), ',')) {
      if (option.starts_with(optionName)) {
        parts = split(std::string_view(option).substr(optionName.size()), ';');
      }
    }
  }
  std::erase_if(parts, [](const std::string& part) { return !isPart(part); });
  return parts;
}

// A second argument would replace the first, so settings of other ports (those of a Direct NIC,
// which rdma_topo writes) stay in it. Of several parts for a port the first counts
// (__pci_config_acs).
std::vector<std::string> withPresent(std::vector<std::string> own,
                                     const std::vector<std::string>& present) {
  const std::vector<std::string> ours = own;
  std::ranges::copy_if(present, std::back_inserter(own), [&](const std::string& part) {
    return std::ranges::find(ours, portOf(part), portOf) == ours.end();
  });
  return own;
}

// What must hold before the argument has its effect: older kernels ignore it or set wrong bits.
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
                   running + ": boot a newer kernel"
             : "needs Linux 6.15, or commit 9cf8a952d57b, for several ports" + running +
                   ": check or change the kernel first, because without it the argument sets wrong "
                   "bits";
}

}  // namespace

std::string acsRemedy(const View& view) {
  const auto own = ownParts(view);
  const auto present = presentParts(view);
  const auto parts = withPresent(own, present);
  const std::string needed = kernelNeededFor(view, parts.size() > 1);
  const bool isPresent = std::ranges::all_of(own, [&](const std::string& part) {
    return std::ranges::find(present, part) != present.end();
  });
  if (isPresent) {
    return (needed.empty() ? "" : needed + "; ") +
           "the kernel command line has the right argument already: see `dmesg | grep -i acs`";
  }
  return (needed.empty() ? "" : needed + ", then ") +
         (present.empty() ? ""
                          : "remove the present config_acs= from the kernel command line, because "
                            "only the last one counts, then ") +
         addKernelArgument(view, "pci=" + std::string(optionName) + join(parts, ";"));
}

}  // namespace vfpass::doctor
