#include "vfpass/doctor/kernel_lines.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/kernel_log.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::size_t longestText = 240;
constexpr std::size_t linesOfEach = 5;  // of one topic and device
constexpr std::size_t mostLines = 200;

// A message has all words of a pattern, in upper or lower case. The first pattern that matches
// counts.
struct Pattern {
  KernelTopic topic;
  bool serious;
  std::array<std::string_view, 2> words;
};

using enum KernelTopic;

// Texts of Linux 4.19 to 6.12 (drivers/iommu, drivers/pci, drivers/vfio,
// drivers/net/ethernet/mellanox/mlx5/core) and of NVIDIA's drivers.
constexpr std::array patterns{
    // intel/dmar.c, dmar_fault_do_one; amd/iommu.c, amd_iommu_report_page_fault; arm-smmu-v3.c
    Pattern{iommuFault, true, {"request device [", "fault"}},
    Pattern{iommuFault, true, {"AMD-Vi:", "event logged ["}},
    Pattern{iommuFault, true, {"arm-smmu", "client: "}},
    Pattern{iommuFault, true, {"ineligible for iommu domain attach", ""}},
    Pattern{iommu, false, {"DMAR: IOMMU disabled", ""}},
    Pattern{iommu, false, {"not enabling interrupt remapping", ""}},
    Pattern{iommu, false, {"interrupt remapping", "disabl"}},
    Pattern{iommu, false, {"no interrupt remapping", ""}},
    Pattern{iommu, false, {"AMD-Vi:", "disabled"}}, Pattern{iommu, false, {"AMD-Vi:", "failed"}},
    Pattern{iommu, false, {"DMAR:", "failed"}}, Pattern{iommu, false, {"DMAR:", "[firmware bug]"}},
    Pattern{iommu, false, {"[firmware bug]", "AMD-Vi:"}},
    Pattern{iommu, false, {"iommu: default domain type: passthrough", ""}},
    // iov.c, sriov_enable; setup-res.c, pci_assign_resource; mlx5's sriov.c
    Pattern{resources, true, {"not enough MMIO resources for SR-IOV", ""}},
    Pattern{resources, true, {"bus number out of range", ""}},
    Pattern{resources, true, {"can't enable ", " VFs (bus "}},
    Pattern{resources, true, {"pci_enable_sriov failed", ""}},
    Pattern{resources, false, {"BAR ", "no space"}},
    Pattern{resources, false, {"BAR ", "failed to assign"}},
    Pattern{resources, false, {"BAR ", "can't assign"}},
    // pcie/aer.c, pcie/dpc.c, hotplug/pciehp_ctrl.c, pci.c, quirks.c. Corrected errors are counted
    // by a working link, too.
    Pattern{link, false, {"severity=correct", ""}},
    Pattern{link, true, {"PCIe Bus Error:", "severity="}},
    Pattern{link, false, {"aer: ", " correct"}}, Pattern{link, true, {"aer: ", "error received"}},
    Pattern{link, true, {"aer: ", "error message received"}},
    Pattern{link, true, {"dpc: containment event", ""}},
    Pattern{link, true, {"retraining non-functional downstream link", ""}},
    Pattern{link, true, {"retraining failed", ""}}, Pattern{link, false, {"pciehp: ", "link down"}},
    Pattern{link, false, {"available PCIe bandwidth, limited by", ""}},
    Pattern{mlx5, true, {"mlx5_core ", "health"}}, Pattern{mlx5, true, {"mlx5_core ", "fatal"}},
    Pattern{mlx5, true, {"mlx5_core ", "cannot allocate"}},
    Pattern{mlx5, true, {"mlx5_core ", "firmware internal error"}},
    Pattern{mlx5, true, {"mlx5_core ", "firmware over "}},
    Pattern{mlx5, true, {"mlx5_core ", "insufficient power"}},
    Pattern{mlx5, true, {"mlx5_core ", "high temperature"}},
    Pattern{mlx5, true, {"mlx5_core ", "cause a leak of a command resource"}},
    Pattern{mlx5, true, {"mlx5_core ", "probe with driver"}},
    Pattern{mlx5, true, {"mlx5_core ", "probe_one"}},
    Pattern{mlx5, false, {"mlx5_core ", "failed"}},
    Pattern{mlx5, false, {"mlx5_core ", "cable error"}},
    Pattern{gpu, true, {"fallen off the bus", ""}}, Pattern{gpu, true, {"NVRM:", "Xid ("}},
    Pattern{gpu, true, {"NVRM:", "RmInitAdapter failed"}},
    Pattern{gpu, true, {"NVRM:", "is invalid"}}, Pattern{gpu, false, {"NVRM:", "failed"}},
    Pattern{gpu, true, {"amdgpu ", "*error*"}}, Pattern{gpu, true, {"amdgpu ", "gpu reset"}},
    // pci.c, pci_dev_wait and pci_power_up; vfio_pci_core.c
    Pattern{reset, true, {"not ready ", "giving up"}},
    Pattern{reset, true, {"unable to change power state from", ""}},
    Pattern{reset, false, {"waiting for pending transaction", ""}},
    Pattern{reset, false, {"vfio-pci ", "failed"}},
    Pattern{reset, false, {"vfio-pci ", "can't reserve"}},
    Pattern{reset, false, {"vfio-pci ", "restoring bars"}},
    Pattern{peerMemory, false, {"nvidia_peermem", ""}},
    Pattern{peerMemory, false, {"nvidia-peermem", ""}},
    Pattern{peerMemory, false, {"nv_peer_mem", ""}},
    Pattern{memoryLock, false, {"rlimit_memlock", ""}}};

char lowered(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool matches(const Pattern& pattern, std::string_view text) {
  const auto isSame = [](char one, char other) { return lowered(one) == lowered(other); };
  return std::ranges::all_of(pattern.words, [&](std::string_view word) {
    return word.empty() ||
           std::search(text.begin(), text.end(), word.begin(), word.end(), isSame) != text.end();
  });
}

// Faults of applications, not of the GPU: NVIDIA's list of Xid errors (13 graphics engine
// exception, 31 memory page fault, 43 stopped channel, 45 preemptive cleanup, 68 and 69 engine
// exceptions).
bool isApplicationXid(std::string_view text) {
  const auto end = text.find("): ");
  if (text.find("Xid (") == std::string_view::npos || end == std::string_view::npos) {
    return false;
  }
  const std::string_view rest = text.substr(end + 3);
  const auto number = parseNumber(rest.substr(0, rest.find_first_not_of("0123456789")));
  constexpr std::array<std::uint64_t, 6> ofApplications{13, 31, 43, 45, 68, 69};
  return number && std::ranges::find(ofApplications, *number) != ofApplications.end();
}

// `[   12.345678] `, as dmesg prints it.
std::string_view withoutTime(std::string_view text) {
  const auto end = text.find("] ");
  const bool isTime =
      text.starts_with('[') && end != std::string_view::npos &&
      text.substr(1, end - 1).find_first_not_of(" 0123456789.") == std::string_view::npos;
  return isTime ? trim(text.substr(end + 2)) : trim(text);
}

// `0000:3b:00.0`, and `3b:00.0` of domain 0 in faults of DMAR; NVRM has `PCI:0000:17:00`.
std::set<PciAddress> devicesIn(std::string_view text) {
  constexpr std::string_view characters = "0123456789abcdefABCDEF:.";
  constexpr std::string_view prefix = "PCI:";
  std::set<PciAddress> found;
  std::size_t at = 0;
  while ((at = text.find_first_of(characters, at)) != std::string_view::npos) {
    const std::size_t begin =
        at > 0 && text.substr(at - 1).starts_with(prefix) ? at - 1 + prefix.size() : at;
    const std::size_t end = std::min(text.find_first_not_of(characters, begin), text.size());
    std::string word(text.substr(begin, end - begin));
    while (!word.empty() && (word.back() == ':' || word.back() == '.')) {
      word.pop_back();
    }
    const bool withoutFunction = begin != at && word.find('.') == std::string::npos;
    if (const auto address = parsePciAddress(withoutFunction ? word + ".0" : word)) {
      found.insert(*address);
    }
    at = std::max(end, at + 1);
  }
  return found;
}

std::string bounded(std::string_view text) {
  return printable(text.substr(0, longestText)) + (text.size() > longestText ? "..." : "");
}

// The last lines of each topic and device, in their order: a fault can repeat a million times. The
// serious ones stay longest.
class LastLines {
 public:
  void add(const KernelLine& line, std::string_view text) {
    const std::size_t number = next_++;
    Group& own = groups_[{line.topic, line.devices}];
    insert(number, line.serious, own);
    texts_.emplace(number, Text{std::string(text.substr(0, longestText + 1)), &own});
    insert(number, line.serious, all_);
    if (own.numbers.size() > linesOfEach) {
      drop(oldestOf(own));
    }
    if (all_.numbers.size() > mostLines) {
      drop(oldestOf(all_));
    }
  }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const auto& [number, line] : texts_) {
      all += printable(line.text) + "\n";
    }
    return all;
  }

 private:
  struct Group {
    std::set<std::size_t> numbers;
    std::set<std::size_t> minor;  // of these, the lines that are not serious
  };

  struct Text {
    std::string text;
    Group* group = nullptr;
  };

  static void insert(std::size_t number, bool serious, Group& group) {
    group.numbers.insert(number);
    if (!serious) {
      group.minor.insert(number);
    }
  }

  static std::size_t oldestOf(const Group& group) {
    return group.minor.empty() ? *group.numbers.begin() : *group.minor.begin();
  }

  void drop(std::size_t number) {
    const auto found = texts_.find(number);
    for (Group* group : {found->second.group, &all_}) {
      group->numbers.erase(number);
      group->minor.erase(number);
    }
    texts_.erase(found);
  }

  std::map<std::pair<KernelTopic, std::set<PciAddress>>, Group> groups_;
  std::map<std::size_t, Text> texts_;
  Group all_;
  std::size_t next_ = 0;
};

}  // namespace

std::optional<KernelLine> readKernelLine(std::string_view text) {
  text = withoutTime(text);
  const auto* const found = std::ranges::find_if(
      patterns, [&](const Pattern& pattern) { return matches(pattern, text); });
  if (found == patterns.end() || explainsNothing(text)) {
    return std::nullopt;
  }
  return KernelLine{found->topic, found->serious && !isApplicationXid(text), devicesIn(text),
                    bounded(text)};
}

std::optional<std::string> relevantKernelLog(const host::Root& root) {
  LastLines lines;
  const auto all = host::readKernelMessages(root, [&](std::string_view text) {
    if (const auto line = readKernelLine(text)) {
      lines.add(*line, text);
    }
    return false;
  });
  return all ? std::optional(lines.text()) : std::nullopt;
}

std::vector<KernelLine> readKernelLines(std::string_view log) {
  std::vector<KernelLine> lines;
  for (const std::string& text : splitLines(log)) {
    auto line = readKernelLine(text);
    if (line && lines.size() < mostLines) {
      lines.push_back(std::move(*line));
    }
  }
  return lines;
}

std::string lastLineAbout(const std::vector<KernelLine>& lines,
                          const std::set<PciAddress>& devices) {
  std::string last;
  bool serious = false;
  for (const KernelLine& line : lines) {
    const bool isAbout = std::ranges::any_of(
        line.devices, [&](const PciAddress& device) { return devices.contains(device); });
    if (isAbout && (line.serious || !serious)) {
      last = line.text;
      serious = line.serious;
    }
  }
  return last;
}

}  // namespace vfpass::doctor
