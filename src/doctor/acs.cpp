#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "check.hpp"
#include "config_space.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/folder.hpp"

namespace vfpass::doctor {
namespace {

// For guests, where a switch carries GPU and NIC: translated requests may go straight on at the
// NIC's port, all else goes through the IOMMU. Bare metal switches redirection off instead
// (xx000x0), which merges IOMMU groups.
constexpr std::string_view nicPort = "1x111x1";
constexpr std::string_view otherPort = "xx111x1";
constexpr std::string_view bareMetal = "xx000x0";
// 47c8846a49ba, and 9cf8a952d57b without which an argument for several ports sets wrong bits (it
// went into 6.12.y in April 2025, too).
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

// ACS of a switch is at its ports downwards; of the root complex at its root ports.
bool controlsAccess(const TopologyFunction& function) {
  return function.role == FunctionRole::downstreamPort || function.role == FunctionRole::rootPort;
}

using Patterns = std::map<std::size_t, std::string_view>;

// Below the first bridge that both have above them, the NIC's ports let translated requests
// through.
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

// Of all rails of the host, also when one VM is looked at: the others must not lose theirs. The
// stricter of two rails' patterns holds for a port of both.
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

// One argument for the whole host: a second pci=config_acs= would take the first one's place.
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
  return "add to the kernel's command line, then reboot: \"pci=config_acs=" + join(parts, ";") +
         "\"" + old;
}

enum class Verdict { good, bad, unseen };

Verdict judge(const View& view, std::size_t port, std::string_view pattern, std::string& seen) {
  const TopologyFunction& function = view.function(port);
  const std::string config = configOf(view, function);
  seen = toString(function.address) + " ";
  if (!hasExtendedSpace(config)) {
    seen += "unreadable";
    return Verdict::unseen;
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
    seen += " (as for bare metal)";
  }
  const auto firstMissing = wanted.find('1');
  for (auto bit = firstMissing; bit != std::string::npos; bit = wanted.find('1', bit + 1)) {
    if (acsText(acs->capable)[bit] == '0') {
      seen += " (the port can only " + acsText(acs->capable) + ")";
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
      "1x111x1 at the NIC's port of a shared switch, xx111x1 at the GPU's and the root ports";
  std::string remedy = remedyFor(view);
  for (const auto& rail : view.rails()) {
    std::vector<std::string> good;
    std::vector<std::string> bad;
    std::vector<std::string> unseen;
    for (const auto& [port, pattern] : patternsOf(view, rail)) {
      std::string seen;
      const Verdict verdict = judge(view, port, pattern, seen);
      auto& list = verdict == Verdict::good ? good : verdict == Verdict::bad ? bad : unseen;
      list.push_back(seen);
    }
    const std::string subject = railName(view, rail);
    if (!bad.empty()) {
      results.failed(subject, expected, join(bad, ", "), remedy);
      remedy = "the argument of the first one is for all of them";
    } else if (!unseen.empty()) {
      results.unseen(subject, expected, join(unseen, ", "), "sudo vfpass doctor");
    } else {
      results.passed(subject, expected, good.empty() ? "no port between them" : join(good, ", "));
    }
  }
}

void checkAts(const View& view, Results& results) {
  const std::string expected = "the ATS capability";
  std::set<std::size_t> seen;
  for (const auto& rail : view.rails()) {
    const TopologyFunction& pf = view.function(*rail.pf);
    if (!seen.insert(*rail.pf).second) {
      continue;
    }
    const std::string config = configOf(view, pf);
    if (!hasExtendedSpace(config)) {
      results.unseen(nameOf(pf), expected, "its configuration space is unreadable",
                     "sudo vfpass doctor");
    } else if (hasAts(config)) {
      results.passed(nameOf(pf), expected, "there");
    } else {
      results.failed(nameOf(pf), expected, "off in the firmware",
                     "mstconfig -d " + toString(pf.address) + " set ATS_ENABLED=1, then reboot");
    }
  }
}

constexpr std::array checks{
    Check{"ats", "only translated requests may go from the NIC to the GPU without the IOMMU",
          withoutRail, checkAts},
    Check{"acs", "the ports between GPU and NIC decide whether traffic is both isolated and direct",
          withoutRail, checkAcs}};

}  // namespace

std::span<const Check> acsChecks() { return checks; }

}  // namespace vfpass::doctor
