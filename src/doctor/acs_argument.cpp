#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "acs_rules.hpp"
#include "config_space.hpp"
#include "remedies.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
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
