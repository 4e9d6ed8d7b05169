#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "check.hpp"
#include "remedies.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* hookLink = "etc/libvirt/hooks/qemu.d/vfpass";
constexpr std::uint64_t usualMappings = 65535;

// Captured trees do not keep file modes.
bool isExecutable(const host::Root& root, const std::string& path) {
  const FileDescriptor file = root.open(path, O_PATH);
  struct stat status {};
  return !root.isLive() || (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                            (status.st_mode & 0111U) != 0);
}

std::string debianPackages(const View& view) {
  return std::string("libvirt-daemon-system qemu-system-") + (isArm(view) ? "arm" : "x86");
}

void checkDaemon(const View& view, Results& results) {
  for (const std::string daemon : daemons) {
    if (view.root().exists("usr/sbin/" + daemon)) {
      return results.passed("", "libvirt's daemon for QEMU", daemon);
    }
  }
  if (!view.root().exists("usr/sbin")) {
    return results.notObservable("", "libvirt's daemon for QEMU", "no programs in this tree",
                                 "virsh version");
  }
  results.failed(
      "", "libvirt's daemon for QEMU", "not installed",
      installPackage(view, {debianPackages(view), "libvirt qemu-kvm", ""}, "libvirt and QEMU"));
}

void checkHook(const View& view, Results& results) {
  const std::string expected = "a link in /etc/libvirt/hooks/qemu.d to the hook program";
  const auto target = view.root().linkTarget(hookLink);
  if (!target && !view.root().exists("etc")) {
    return results.notObservable("", expected, "no configuration in this tree",
                                 "vfpass hook install");
  }
  if (!target) {
    const bool there = view.root().exists(hookLink);
    return results.failed("", expected, there ? "a file, not a link" : "none",
                          there ? "inspect /" + std::string(hookLink) + ": vfpass did not create it"
                                : "vfpass hook install");
  }
  const std::string program = target->starts_with('/') ? target->substr(1) : "";
  if (program.empty() || !view.root().exists(program)) {
    results.failed("", expected, *target + " does not exist: libvirt skips the link",
                   "vfpass hook install");
  } else if (!isExecutable(view.root(), program)) {
    results.failed("", expected, *target + " is not executable",
                   "chmod 0755 " + shellArgument(*target));
  } else {
    results.passed("", expected, *target);
  }
}

std::string withoutUnits(const View& view) {
  if (view.requirements().units.empty()) {
    return "no mapping and no host.yaml needs one";
  }
  return hasSystemd(view.root()) ? "" : "systemd does not run";
}

void checkUnits(const View& view, Results& results) {
  for (const auto& [name, why] : view.requirements().units) {
    const std::string expected = "enabled: " + why;
    if (isEnabled(view.root(), name)) {
      results.passed(name, expected, "enabled");
    } else {
      results.failed(name, expected, "not enabled", "systemctl enable --now " + name);
    }
  }
}

std::string withoutVfio(const View& view) {
  return view.moduleLoaded("vfio_iommu_type1") ? "" : "vfio_iommu_type1 is not loaded";
}

void checkMappingLimit(const View& view, Results& results) {
  const std::string parameter = "sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
  const std::string expected = "at least " + std::to_string(usualMappings) + " DMA mappings";
  const auto limit = view.root().readNumber(parameter);
  if (!limit) {
    results.notObservable("", expected, "no dma_entry_limit", "");
  } else if (*limit < usualMappings) {
    results.failed("", expected, std::to_string(*limit),
                   "echo " + std::to_string(usualMappings) + " > /" + parameter);
  } else {
    results.passed("", expected, std::to_string(*limit));
  }
}

void checkHugepages(const View& view, Results& results) {
  const std::string expected = "reserved hugepages, or transparent ones for guests";
  const std::string folder = "sys/kernel/mm/hugepages";
  for (const std::string& size : view.root().list(folder)) {
    const auto count = view.root().readNumber(folder + "/" + size + "/nr_hugepages").value_or(0);
    if (count > 0) {
      return results.passed("", expected, std::to_string(count) + " of " + size);
    }
  }
  const auto mode = view.root().readText("sys/kernel/mm/transparent_hugepage/enabled");
  if (!mode) {
    results.notObservable("", expected, "cannot read the kernel's hugepage settings",
                          "grep Huge /proc/meminfo");
  } else if (mode->find("[never]") != std::string::npos) {
    results.failed("", expected, "none reserved, transparent hugepages off",
                   "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  } else {
    results.passed("", expected, "transparent: " + *mode);
  }
}

using Version = std::pair<unsigned, unsigned>;

/// A feature and the version of libvirt that introduced it.
struct Feature {
  Version since;
  std::string_view name;
};

constexpr Version hooksInFolder{6, 5};
constexpr Version teaming{7, 1};
constexpr Version driverModel{10, 0};
constexpr std::array features{Feature{hooksInFolder, "hooks in qemu.d"},
                              Feature{teaming, "hostdev teaming"},
                              Feature{{8, 2}, "qemu:override (GPUDirect cliques, link speeds)"},
                              Feature{driverModel, "driver model mlx5_vfio_pci"}};
// 8.0 needs x-enable-migration=on, which libvirt does not set.
constexpr Version qemuThatMigratesVfs{8, 1};

// From the library's file name: libvirt.so.0.9000.0 is version 9.0.0.
std::optional<std::string> libraryVersion(const host::Root& root) {
  constexpr std::string_view prefix = "libvirt.so.0.";
  constexpr unsigned major = 1000;
  for (const std::string folder :
       {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"}) {
    const auto target = root.linkName(folder + "/libvirt.so.0");
    if (!target || !target->starts_with(prefix)) {
      continue;
    }
    const auto dot = target->find('.', prefix.size());
    const auto number =
        parseNumber(std::string_view(*target).substr(prefix.size(), dot - prefix.size()));
    if (number && dot != std::string::npos) {
      return std::to_string(*number / major) + "." + std::to_string(*number % major) +
             target->substr(dot);
    }
  }
  return std::nullopt;
}

struct Versions {
  std::string libvirt;
  std::string qemu;
};

Versions versionsOf(const View& view) {
  const auto answer = view.answer("libvirt/versions", [&]() -> std::optional<std::string> {
    const auto& query = view.inquiries().hypervisorVersions;
    return query ? query() : std::nullopt;
  });
  if (!answer) {
    return {libraryVersion(view.root()).value_or(""), ""};
  }
  const auto blank = std::min(answer->find(' '), answer->size());
  return {answer->substr(0, blank), std::string(trim(answer->substr(blank)))};
}

// Why the versions are unknown.
std::string silenceText(const View& view) {
  const auto recorded = view.answer(versionsNotObserved, [] { return std::nullopt; });
  return recorded ? printable(std::string(trim(*recorded))) : "libvirt does not respond";
}

const Requirement* requirementWith(const View& view, bool Requirement::*feature) {
  const auto found = std::ranges::find(view.requirements().vfs, true, feature);
  return found == view.requirements().vfs.end() || found->vm.empty() ? nullptr : &*found;
}

/// The lowest version of libvirt that the mappings can use, and for which of them.
struct NeededLibvirt {
  Version version = hooksInFolder;
  std::string expected = "6.5 or later";
};

NeededLibvirt neededLibvirt(const View& view) {
  if (const Requirement* moves = requirementWith(view, &Requirement::migration)) {
    return {driverModel,
            "10.0 or later: " + moves->vm + ", " + moves->entry + " has `migration: vfio`"};
  }
  if (const Requirement* team = requirementWith(view, &Requirement::teaming)) {
    return {teaming, "7.1 or later: " + team->vm + ", " + team->entry + " uses teaming"};
  }
  return {};
}

std::string allowed(const Version& version) {
  std::vector<std::string> has;
  std::vector<std::string> lacks;
  for (const Feature& feature : features) {
    (version >= feature.since ? has : lacks).emplace_back(feature.name);
  }
  return (has.empty() ? "" : ": " + join(has, ", ")) +
         (lacks.empty() ? "" : "; without " + join(lacks, ", "));
}

void checkLibvirtVersion(const View& view, Results& results) {
  const auto [needed, expected] = neededLibvirt(view);
  const std::string found = versionsOf(view).libvirt;
  const auto version = leadingVersion(found);
  if (!version) {
    results.notObservable("", expected, silenceText(view) + ", and no library shows its version",
                          "virsh version");
  } else if (*version < needed) {
    results.failed("", expected, found + allowed(*version), "install a newer libvirt");
  } else {
    results.passed("", expected, found + allowed(*version));
  }
}

// Only `migration: vfio` requires a version; otherwise the finding shows what this one allows.
void checkQemuVersion(const View& view, Results& results) {
  const Requirement* moves = requirementWith(view, &Requirement::migration);
  const std::string expected = moves != nullptr ? "8.1 or later: " + moves->vm + ", " +
                                                      moves->entry + " has `migration: vfio`"
                                                : "any; 8.1 or later to migrate a VF itself";
  const std::string found = versionsOf(view).qemu;
  const auto version = leadingVersion(found);
  if (!version) {
    results.notObservable(
        "", expected, silenceText(view),
        std::string("qemu-system-") + (isArm(view) ? "aarch64" : "x86_64") + " --version");
  } else if (*version >= qemuThatMigratesVfs) {
    results.passed("", expected, found + ": VFs can migrate");
  } else if (moves != nullptr) {
    results.failed("", expected, found + ": migrates only teamed VFs", "install a newer QEMU");
  } else {
    results.passed("", expected, found + ": migrates only teamed VFs");
  }
}

/// One state of the daemon: as captured trees store it, and as the finding reports it.
struct KnowledgeText {
  HookKnowledge knowledge;
  std::string_view stored;
  std::string_view seen;
};

constexpr std::array knowledgeTexts{
    KnowledgeText{HookKnowledge::noDaemon, "no daemon runs: it looks when it starts",
                  "no daemon is running; it checks for hooks when it starts"},
    KnowledgeText{HookKnowledge::startedAfter, "the daemon started when there was a hook",
                  "the daemon started after a hook was installed"},
    KnowledgeText{HookKnowledge::reloaded, "vfpass hook install reloaded the daemon",
                  "vfpass hook install reloaded the daemon"},
    KnowledgeText{
        HookKnowledge::stale,
        "the daemon started before there was any hook, and vfpass has not reloaded it",
        "the daemon started before any hook was installed, and vfpass has not reloaded it"}};

void checkHookLoaded(const View& view, Results& results) {
  const std::string expected = "a daemon that checked for hooks after the first one was installed";
  const auto answer = view.answer("libvirt/hook-loaded", [&]() -> std::optional<std::string> {
    const auto knowledge = hookKnowledge(view.root(), view.inquiries().runDirectory);
    const auto* text = std::ranges::find_if(
        knowledgeTexts, [&](const KnowledgeText& each) { return each.knowledge == knowledge; });
    return text == knowledgeTexts.end() ? std::nullopt : std::optional<std::string>(text->stored);
  });
  const auto* known = std::ranges::find_if(
      knowledgeTexts, [&](const KnowledgeText& each) { return each.stored == answer; });
  if (known == knowledgeTexts.end()) {
    results.notObservable("", expected, "cannot tell whether the daemon has reloaded its hooks",
                          "sudo vfpass doctor");
  } else if (known->knowledge == HookKnowledge::stale) {
    results.failed("", expected, std::string(known->seen), "vfpass hook install");
  } else {
    results.passed("", expected, std::string(known->seen));
  }
}

std::string withoutHook(const View& view) {
  return view.root().linkTarget(hookLink) ? "" : "no hook: see hook";
}

constexpr std::array libvirtTable{
    Check{"libvirt", "it runs the guests", always, checkDaemon},
    Check{"hook", "without it a domain finds no VFs when it starts after a reboot", always,
          checkHook},
    Check{"units", "systemd creates VFs at boot and verifies VMs after a start", withoutUnits,
          checkUnits},
    Check{"dma-mappings", "a guest with much fragmented memory reaches the limit", withoutVfio,
          checkMappingLimit},
    Check{"hugepages", "VFIO pins all of a guest's memory, and the IOMMU maps it page by page",
          always, checkHugepages},

    Check{"libvirt-version", "hooks in qemu.d need libvirt 6.5, some features a later version",
          always, checkLibvirtVersion},
    Check{"qemu-version", "it decides whether VFs can migrate", always, checkQemuVersion},
    Check{"hook-loaded", "a daemon that finds no hook when it starts never calls one", withoutHook,
          checkHookLoaded}};

}  // namespace

std::span<const Check> libvirtChecks() { return libvirtTable; }

bool isHookInstalled(const host::Root& root) {
  const auto target = root.linkTarget(hookLink);
  return target && target->starts_with('/') && root.exists(target->substr(1));
}

// sd_booted(3).
bool hasSystemd(const host::Root& root) { return root.exists("run/systemd/system"); }

bool isEnabled(const host::Root& root, const std::string& unit) {
  for (const std::string folder :
       {"etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system"}) {
    for (const std::string& name : root.list(folder)) {
      const bool pulls = name.ends_with(".wants") || name.ends_with(".requires");
      if (pulls && root.linkTarget(folder + "/" + name + "/" + unit)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace vfpass::doctor
