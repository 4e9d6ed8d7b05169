#include <algorithm>
#include <array>
#include <map>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/kernel_lines.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* expectedLog = "no error of a used NIC, GPU, or switch port above it";

// The topics that explain a finding of a check. Those of the host as a whole name no device.
struct Explanation {
  std::string_view check;
  std::array<std::optional<KernelTopic>, 2> topics;
};

using enum KernelTopic;
constexpr std::array explanations{Explanation{"iommu", {iommu}},
                                  Explanation{"interrupt-remapping", {iommu}},
                                  Explanation{"iommu-passthrough", {iommu}},
                                  Explanation{"iommu-group", {iommu, iommuFault}},
                                  Explanation{"sriov-firmware", {resources, mlx5}},
                                  Explanation{"vf-count", {resources, mlx5}},
                                  Explanation{"vf-space", {resources}},
                                  Explanation{"pcie-link", {link, reset}},
                                  Explanation{"gpu-bar", {resources, gpu}},
                                  Explanation{"gpu-driver", {gpu}},
                                  Explanation{"gpu-reset", {reset, gpu}},
                                  Explanation{"driver-order", {peerMemory}},
                                  Explanation{"nv-peer-mem", {peerMemory}},
                                  Explanation{"pf-netdev", {mlx5}},
                                  Explanation{"pf-link", {mlx5}},
                                  Explanation{"memory-lock", {memoryLock}},
                                  Explanation{"guest-memory-lock", {memoryLock}}};

bool isOfHost(KernelTopic topic) {
  return topic == iommu || topic == peerMemory || topic == memoryLock;
}

std::optional<std::string> logOf(const View& view) {
  return view.answer("kernel-log", [&] { return relevantKernelLog(view.root()); });
}

// A port that reports the error of a device below it is not itself at fault, nor are the other
// devices below it: `pcieport 0000:00:01.0: AER: ... error received: 0000:03:00.0`.
void leavePortsOut(const View& view, KernelLine& line) {
  const auto isPort = [&](const PciAddress& address) {
    const Device* function = findFunction(view.topology(), address);
    return function != nullptr && isBridge(*function);
  };
  if (!std::ranges::all_of(line.devices, isPort)) {
    std::erase_if(line.devices, isPort);
  }
}

std::vector<KernelLine> linesOf(const View& view, const std::string& log) {
  auto lines = readKernelLines(log);
  for (KernelLine& line : lines) {
    leavePortsOut(view, line);
  }
  return lines;
}

// The device, its VFs, and the ports above it, which report errors of its links.
std::set<PciAddress> addressesOf(const View& view, std::size_t number) {
  const auto& functions = view.topology().functions;
  std::set<PciAddress> places{functions[number].address};
  for (const Device& each : functions) {
    if (each.physicalFunction == functions[number].address) {
      places.insert(each.address);
    }
  }
  for (auto at = functions[number].parent; at; at = functions[*at].parent) {
    places.insert(functions[*at].address);
  }
  return places;
}

// A device is the subject by its address or one of its names: `mlx5_0`, `switch 0000:01:00.0`.
std::set<PciAddress> addressesOf(const View& view, const std::string& subject) {
  const std::string words = " " + subject + " ";
  const auto isNamed = [&](const std::string& name) {
    return !name.empty() && words.find(" " + name + " ") != std::string::npos;
  };
  std::set<PciAddress> places;
  const auto& functions = view.topology().functions;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (isNamed(toString(functions[i].address)) || isNamed(functions[i].netdev()) ||
        isNamed(functions[i].rdmaDevice())) {
      places.merge(addressesOf(view, i));
    }
  }
  return places;
}

// Every message about a device has these: faults of DMAR lack the domain, NVRM's the function.
std::string busAndSlot(const PciAddress& address) {
  const std::string text = toString(address);
  const auto begin = text.find(':') + 1;
  return text.substr(begin, text.rfind('.') - begin);
}

std::string explanationOf(const View& view, const std::vector<KernelLine>& lines,
                          const Finding& finding) {
  const auto* const found = std::ranges::find(explanations, finding.key, &Explanation::check);
  if (found == explanations.end()) {
    return {};
  }
  std::vector<KernelLine> own;
  std::ranges::copy_if(lines, std::back_inserter(own), [&](const KernelLine& line) {
    return std::ranges::find(found->topics, line.topic) != found->topics.end();
  });
  const auto ofHost = std::ranges::find_if(
      own.rbegin(), own.rend(), [](const KernelLine& line) { return isOfHost(line.topic); });
  return ofHost != own.rend() ? ofHost->text
                              : lastLineAbout(own, addressesOf(view, finding.subject));
}

struct Count {
  std::size_t lines = 0;
  std::string last;
};

// By the used devices.
std::map<std::size_t, Count> countSerious(const View& view, const std::vector<KernelLine>& lines) {
  std::map<std::size_t, Count> counts;
  for (const auto& devices : {view.pfs(), view.gpus()}) {
    for (const std::size_t device : devices) {
      const auto places = view.uses(device) ? addressesOf(view, device) : std::set<PciAddress>{};
      for (const KernelLine& line : lines) {
        const bool isAbout = std::ranges::any_of(
            line.devices, [&](const PciAddress& each) { return places.contains(each); });
        if (line.serious && isAbout) {
          ++counts[device].lines;
          counts[device].last = line.text;
        }
      }
    }
  }
  return counts;
}

}  // namespace

void checkKernelLog(const View& view, Results& results) {
  const auto log = logOf(view);
  if (!log) {
    return results.notObservable(
        "", expectedLog,
        view.root().isLive() ? "cannot read the kernel log" : "no kernel log in this tree",
        "sudo vfpass doctor");
  }
  const auto counts = countSerious(view, linesOf(view, *log));
  for (const auto& [device, count] : counts) {
    const Device& function = view.function(device);
    const std::string lines =
        count.lines == 1 ? "1 line: " : std::to_string(count.lines) + " lines or more; the last: ";
    results.warned(
        function.role == FunctionRole::gpu ? toString(function.address) : nameOf(function),
        expectedLog, lines + count.last, "dmesg | grep " + busAndSlot(function.address));
  }
  if (counts.empty()) {
    results.passed("", expectedLog, "none in the log of this boot");
  }
}

void quoteKernelLog(const View& view, std::vector<Diagnosis>& diagnoses) {
  const auto lines = linesOf(view, logOf(view).value_or(""));
  for (Diagnosis& diagnosis : diagnoses) {
    Finding& finding = diagnosis.finding;
    if (finding.outcome != Outcome::failed && finding.outcome != Outcome::warning) {
      continue;
    }
    if (const std::string line = explanationOf(view, lines, finding); !line.empty()) {
      finding.seen += " (kernel: " + line + ")";
    }
  }
}

namespace {

constexpr const char* expectedDevices = "no device in quarantine";

// All functions of its slot have this in their lines of the kernel log.
std::string slotOf(const PciAddress& address) {
  const std::string text = toString(address);
  return text.substr(0, text.rfind('.'));
}

std::string seenOf(const QuarantinedDevice& device) {
  std::string seen = "since " + printable(device.since) + ": " + printable(device.reason);
  for (const PciAddress& place : device.elsewhere) {
    seen += "; it is at " + toString(place) + " now";
  }
  return isReplaced(device) ? seen + "; another card is at this address now" : seen;
}

}  // namespace

std::string withoutQuarantine(const View& view) {
  return view.requirements().quarantined ? "" : "the devices in quarantine are not known";
}

// Of the whole host: a device that nobody uses now is one that `index: auto` and `init` leave out.
void checkQuarantine(const View& view, Results& results) {
  const auto& quarantined = view.requirements().quarantined.value();
  for (const QuarantinedDevice& device : quarantined) {
    results.warned(toString(device.device), expectedDevices, seenOf(device),
                   "look for the cause (`dmesg | grep " + slotOf(device.device) +
                       "`), remove it, then run `vfpass quarantine release " +
                       toString(device.device) + "`");
  }
  if (quarantined.empty()) {
    results.passed("", expectedDevices, "none");
  }
}

}  // namespace vfpass::doctor
