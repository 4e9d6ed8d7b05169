#include <algorithm>
#include <array>
#include <map>

#include "check.hpp"
#include "remedies.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::size_t cpuinfoLimit = 16384;  // the first processor with all its flags
constexpr std::size_t interruptLimit = 256;
constexpr const char* groupsFolder = "sys/kernel/iommu_groups";

bool isIntel(const View& view) { return view.topology().processors.vendor == "GenuineIntel"; }

std::string unlessX86(const View& view) {
  return view.topology().processors.architecture == "x86_64" ? "" : "not an x86 processor";
}

bool hasIommu(const View& view) { return !view.root().list(groupsFolder).empty(); }

std::string withoutIommu(const View& view) { return hasIommu(view) ? "" : "no IOMMU: see iommu"; }

void checkVirtualization(const View& view, Results& results) {
  const std::string expected = "flag vmx (Intel) or svm (AMD)";
  const std::string text = view.root().readText("proc/cpuinfo", cpuinfoLimit).value_or("");
  const auto lines = splitLines(text);
  const auto flags = std::ranges::find_if(
      lines, [](const std::string& line) { return line.starts_with("flags"); });
  if (flags == lines.end()) {
    return results.notObservable("", expected, "no flags in /proc/cpuinfo",
                                 "grep -w flags /proc/cpuinfo");
  }
  const std::string words = *flags + " ";
  for (const std::string flag : {"vmx", "svm"}) {
    if (words.find(" " + flag + " ") != std::string::npos) {
      return results.passed("", expected, flag);
    }
  }
  results.failed("", expected, "neither",
                 "enable VT-x or SVM in the firmware: systemctl reboot --firmware-setup");
}

void checkKvm(const View& view, Results& results) {
  const std::string module = isIntel(view) ? "kvm_intel" : "kvm_amd";
  if (view.moduleLoaded(module)) {
    results.passed("", module + " loaded", module);
  } else if (!view.root().exists("sys/module")) {
    results.notObservable("", module + " loaded", "no modules in this tree", "lsmod | grep kvm");
  } else {
    results.failed("", module + " loaded", "not loaded", "modprobe " + module);
  }
}

constexpr const char* enableInFirmware = ": systemctl reboot --firmware-setup";

// Intel's IOMMU needs the argument unless the kernel was built to enable it by default.
std::string remedyWithoutGroups(const View& view) {
  if (!isIntel(view)) {
    return std::string("enable ") + (isArm(view) ? "the SMMU" : "the IOMMU (AMD-Vi)") +
           " in the firmware" + enableInFirmware;
  }
  const bool isOn = view.kernelArgument("intel_iommu").value_or("").starts_with("on");
  return isOn ? std::string("intel_iommu=on is set already: enable VT-d in the firmware") +
                    enableInFirmware
              : "enable VT-d in the firmware, then " + addKernelArgument(view, "intel_iommu=on");
}

void checkIommu(const View& view, Results& results) {
  const std::string expected = "IOMMU groups";
  if (const auto groups = view.root().list(groupsFolder).size(); groups > 0) {
    return results.passed("", expected, std::to_string(groups) + " groups");
  }
  // Arm's kernel knows none of them (kernel-parameters.txt): its SMMU is on if the firmware has it.
  for (const char* argument : {"iommu", "intel_iommu", "amd_iommu"}) {
    const auto value = view.kernelArgument(argument).value_or("");
    if (value.starts_with("off") && !isArm(view)) {
      return results.failed("", expected, std::string(argument) + "=off on the kernel command line",
                            removeKernelArgument(view, std::string(argument) + "=" + value));
    }
  }
  results.failed("", expected, "none", remedyWithoutGroups(view));
}

// An identity domain comes from the command line or from the kernel's default
// (CONFIG_IOMMU_DEFAULT_PASSTHROUGH). Arm's kernel does not know `iommu=`.
std::string remedyForPassthrough(const View& view) {
  if (view.kernelArgument("iommu") == "pt" && !isArm(view)) {
    return removeKernelArgument(view, "iommu=pt");
  }
  const auto passthrough = view.kernelArgument("iommu.passthrough");
  return passthrough && *passthrough != "0"
             ? removeKernelArgument(view, "iommu.passthrough=" + *passthrough)
             : addKernelArgument(view, "iommu.passthrough=0");
}

// Before Linux 6.12 (6c17c7d5936e) the kernel does not program the smallest translation unit of a
// PF in an identity domain, so that its VFs cannot enable ATS. Distributions have backported the
// fix.
void checkPassthrough(const View& view, Results& results) {
  const std::string expected = "the IOMMU translates for the PF, or Linux 6.12 or later";
  const auto version = view.kernelVersion();
  bool any = false;
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (!canHaveAts(view, pf)) {
      continue;
    }
    any = true;
    const auto type = pf.iommuGroup ? view.root().readText(std::string(groupsFolder) + "/" +
                                                           std::to_string(*pf.iommuGroup) + "/type")
                                    : std::nullopt;
    if (!sharesSwitchWithGpu(view, number)) {
      results.passed(nameOf(pf), expected, "not needed: no GPU shares a switch with it");
    } else if (!type || type->empty()) {
      results.notObservable(nameOf(pf), expected, "cannot read the type of its IOMMU group", "");
    } else if (*type != "identity" || (version && *version >= std::pair(6U, 12U))) {
      results.passed(nameOf(pf), expected, *type);
    } else {
      results.notObservable(
          nameOf(pf), expected,
          "identity on an older kernel: VFs have no ATS unless it has commit 6c17c7d5936e",
          remedyForPassthrough(view));
    }
  }
  if (!any) {
    results.waived("no NIC here can have ATS: see other-nics");
  }
}

// The kernel names remapped interrupt controllers `IR-PCI-MSI`, `IR-IO-APIC`.
void checkRemapping(const View& view, Results& results) {
  const std::string expected = "interrupts are remapped";
  if (const auto value = view.kernelArgument("intremap").value_or(""); value.starts_with("off")) {
    return results.failed("", expected, "intremap=off on the kernel command line",
                          removeKernelArgument(view, "intremap=" + value));
  }
  std::size_t seen = 0;
  for (const std::string& number : view.root().list("sys/kernel/irq")) {
    const auto chip = view.root().readText("sys/kernel/irq/" + number + "/chip_name");
    if (chip && chip->starts_with("IR-")) {
      return results.passed("", expected, *chip);
    }
    seen += chip && chip->find("PCI-MSI") != std::string::npos ? 1 : 0;
    if (seen > interruptLimit) {
      break;
    }
  }
  if (seen > 0) {
    results.failed("", expected, "PCI-MSI, not IR-PCI-MSI",
                   std::string("enable interrupt remapping (x2APIC, VT-d) in the firmware") +
                       enableInFirmware);
  } else {
    results.notObservable("", expected, "no PCI device interrupt in /sys/kernel/irq",
                          "dmesg | grep -i remapping");
  }
}

bool isOn(const std::string& value) { return value == "1" || value == "y" || value == "Y"; }

// Every place that turns the flag on: each of them outlives a change of the others.
void checkFlag(const View& view, const std::string& module, const std::string& parameter,
               Results& results) {
  const std::string expected = parameter + "=N";
  bool found = false;
  const auto fail = [&](const std::string& subject, const std::string& seen, std::string remedy) {
    results.failed(subject, expected, seen, std::move(remedy));
    found = true;
  };
  if (view.moduleFlag(module, parameter).value_or(false)) {
    fail("", parameter + "=Y", "echo N > /sys/module/" + module + "/parameters/" + parameter);
  }
  const std::string argument = module + "." + parameter;
  if (const auto value = view.kernelArgument(argument); value && isOn(*value)) {
    fail("", argument + "=" + *value + " on the kernel command line",
         removeKernelArgument(view, argument + "=" + *value));
  }
  for (const std::string& name : view.root().list("etc/modprobe.d")) {
    for (const std::string& line : view.settings("etc/modprobe.d/" + name)) {
      if (line.starts_with(parameter + "=") && isOn(line.substr(parameter.size() + 1))) {
        // Not a command: the line may set other options, too, or continue on the next one.
        fail("/etc/modprobe.d/" + name, line,
             "remove " + line + " from the options of " + module + " in /etc/modprobe.d/" +
                 printable(name));
      }
    }
  }
  if (!found) {
    results.passed("", expected, view.moduleLoaded(module) ? "N" : module + " not loaded");
  }
}

void checkUnsafeInterrupts(const View& view, Results& results) {
  checkFlag(view, "vfio_iommu_type1", "allow_unsafe_interrupts", results);
}

void checkNoIommu(const View& view, Results& results) {
  checkFlag(view, "vfio", "enable_unsafe_noiommu_mode", results);
}

using Groups = std::map<unsigned, std::vector<std::size_t>>;

// Without bridges: VFIO does not require them.
Groups groupsOf(const Topology& topology) {
  Groups groups;
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    const Device& function = topology.functions[i];
    if (function.iommuGroup && !isPciBridge(function.classCode)) {
      groups[*function.iommuGroup].push_back(i);
    }
  }
  return groups;
}

// The Direct NIC's DMA function shares the group with its GPU on purpose.
bool isDirectNicOf(const Device& gpu, const Device& foreign) {
  return gpu.role == FunctionRole::gpu && isDirectNicDma(foreign);
}

// Another function in its group that cannot go to the same guest; only if there is none, its Direct
// NIC.
const Device* foreignFunction(const View& view, const Groups& groups, std::size_t number) {
  const Device& function = view.function(number);
  const Device* directNic = nullptr;
  for (const std::size_t other : groups.at(*function.iommuGroup)) {
    const Device& foreign = view.function(other);
    const bool partOfGpu =
        function.role == FunctionRole::gpu && sameCard(function.address, foreign.address);
    if (isDirectNicOf(function, foreign)) {
      directNic = &foreign;
    } else if (other != number && !partOfGpu) {
      return &foreign;
    }
  }
  return directNic;
}

void checkGroups(const View& view, Results& results) {
  const std::string expected = "alone in its IOMMU group";
  const Groups groups = groupsOf(view.topology());
  // Reports a function that is not alone; true if it is.
  const auto check = [&](std::size_t number, const std::string& subject) {
    const Device& function = view.function(number);
    if (!function.iommuGroup) {
      results.failedIfUsed(
          view.uses(number), subject, expected, "no IOMMU group",
          isArm(view) ? "dmesg | grep -i smmu" : "dmesg | grep -i -e DMAR -e AMD-Vi");
    } else if (const auto* foreign = foreignFunction(view, groups, number);
               foreign != nullptr && isDirectNicOf(function, *foreign)) {
      results.warned(subject, expected,
                     "shares group " + std::to_string(*function.iommuGroup) +
                         " with the DMA function of its Direct NIC, " + toString(foreign->address),
                     "list " + toString(foreign->address) +
                         " under `functions:` of the same mapping: the group goes to one guest");
    } else if (foreign != nullptr) {
      results.failedIfUsed(view.uses(number), subject, expected,
                           "shares group " + std::to_string(*function.iommuGroup) + " with " +
                               toString(foreign->address),
                           "enable ACS on the ports above it (see acs), then reboot");
    } else {
      return true;
    }
    return false;
  };
  // Each GPU by itself, which should share its group with the DMA function of its Direct NIC.
  for (const std::size_t gpu : view.gpus()) {
    const std::string subject = toString(view.function(gpu).address);
    if (!check(gpu, subject)) {
      continue;
    }
    if (const auto dma = directNicOf(view, gpu)) {
      results.warned(subject, "in one IOMMU group with the DMA function of its Direct NIC",
                     "not with " + toString(view.function(*dma).address), "rdma_topo check");
    } else {
      results.passed(subject, expected, "alone");
    }
  }
  // VFs by the number of good ones of each PF.
  std::map<std::size_t, unsigned> good;
  const auto& functions = view.topology().functions;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto pf = std::ranges::find_if(view.pfs(), [&](std::size_t number) {
      return functions[i].physicalFunction == view.function(number).address;
    });
    if (pf != view.pfs().end() && check(i, toString(functions[i].address))) {
      ++good[*pf];
    }
  }
  for (const auto& [pf, count] : good) {
    results.passed(nameOf(view.function(pf)), expected, std::to_string(count) + " VFs alone");
  }
}

std::string withoutAts(const View& view) {
  const std::string reason = withoutIommu(view);
  return reason.empty() ? withoutRail(view) : reason;
}

constexpr std::array cpuIommuTable{
    Check{"cpu-virtualization", "without it guests run emulated and VFIO does not work", unlessX86,
          checkVirtualization},
    Check{"kvm", "QEMU needs it for hardware virtualization", unlessX86, checkKvm},
    Check{"iommu", "VFIO assigns a device to a guest only behind an IOMMU", always, checkIommu},
    Check{"interrupt-remapping", "without it a guest's device can raise any interrupt of the host",
          unlessX86, checkRemapping},
    Check{"unsafe-interrupts", "it allows VFIO without interrupt remapping", always,
          checkUnsafeInterrupts},
    Check{"no-iommu-mode", "it lets a guest's device access all of the host's memory", always,
          checkNoIommu},
    Check{"iommu-passthrough",
          "VFs need ATS for GPUDirect below a switch, and ATS depends on the PF's setup",
          withoutAts, checkPassthrough},
    Check{"iommu-group", "all devices of a group go to the same guest or to none", withoutIommu,
          checkGroups}};

}  // namespace

std::optional<bool> isAloneInGroup(const View& view, std::size_t number) {
  return view.function(number).iommuGroup
             ? std::optional(foreignFunction(view, groupsOf(view.topology()), number) == nullptr)
             : std::nullopt;
}

std::span<const Check> cpuIommuChecks() { return cpuIommuTable; }

}  // namespace vfpass::doctor
