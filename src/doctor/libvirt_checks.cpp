#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "check.hpp"
#include "distribution.hpp"
#include "vfpass/base/shell.hpp"

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
  const bool isArm = view.topology().processors.architecture == "arm64";
  return std::string("libvirt-daemon-system qemu-system-") + (isArm ? "arm" : "x86");
}

void checkDaemon(const View& view, Results& results) {
  for (const std::string daemon : {"virtqemud", "libvirtd"}) {
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

constexpr std::array checks{
    Check{"libvirt", "it runs the guests", always, checkDaemon},
    Check{"hook", "without it a domain finds no VFs when it starts after a reboot", always,
          checkHook},
    Check{"dma-mappings", "a guest with much fragmented memory reaches the limit", withoutVfio,
          checkMappingLimit},
    Check{"hugepages", "VFIO pins all of a guest's memory, and the IOMMU maps it page by page",
          always, checkHugepages}};

}  // namespace

std::span<const Check> libvirtChecks() { return checks; }

}  // namespace vfpass::doctor
