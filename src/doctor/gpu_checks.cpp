#include <algorithm>
#include <array>

#include "check.hpp"
#include "config_space.hpp"
#include "remedies.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/function_reset.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::doctor {
namespace {

// The usual size before Resizable BAR, and of some data centre GPUs for good (Tesla T4).
constexpr std::uint64_t smallBar = 256 * mebibyte;

std::string sizeText(std::uint64_t bytes) {
  return bytes >= gibibyte ? std::to_string(bytes / gibibyte) + " GiB"
                           : std::to_string(bytes / mebibyte) + " MiB";
}

// The GPU's memory is behind its largest prefetchable BAR.
std::optional<PciResource> memoryBar(const std::string& text) {
  std::optional<PciResource> largest;
  auto bars = readPciResources(text);
  bars.resize(std::min(bars.size(), pciBars));
  for (const PciResource& bar : bars) {
    const bool wanted =
        (bar.flags & memoryResource) != 0 && (bar.flags & prefetchableResource) != 0;
    if (wanted && (!largest || bar.bytes > largest->bytes)) {
      largest = bar;
    }
  }
  return largest;
}

constexpr const char* wideBar = "a 64-bit memory BAR";
constexpr const char* barRemedy =
    "enable Above 4G Decoding and Resizable BAR in the firmware: "
    "systemctl reboot --firmware-setup";

// The types of the BARs, which are hard-wired: in `resource`, a BAR that the kernel could not place
// looks like one that does not exist.
bool hasMemoryBar(const std::string& config) {
  constexpr std::size_t firstBar = 0x10;
  constexpr std::size_t barBytes = 4;
  constexpr unsigned ioSpace = 0x1;
  constexpr unsigned prefetchableBit = 0x8;
  for (std::size_t bar = 0; bar < pciBars; ++bar) {
    const unsigned low = static_cast<unsigned char>(config[firstBar + bar * barBytes]);
    if ((low & ioSpace) == 0 && (low & prefetchableBit) != 0) {
      return true;
    }
  }
  return false;
}

// An integrated GPU (GB10) uses the host's memory and has no BAR for any of its own, whatever the
// firmware sets up.
bool lacksMemoryBar(const View& view, const Device& gpu) {
  constexpr std::size_t header = 64;
  const std::string config = readConfig(view.root(), gpu, header);
  return config.size() == header && !hasMemoryBar(config);
}

// GPUDirect RDMA works with a small BAR, but the memory that is registered at one time has to fit
// into it. It is a fault only where the GPU offers more.
void judgeSmallBar(const View& view, const Device& gpu, std::uint64_t size, Results& results) {
  const std::string subject = toString(gpu.address);
  const std::string seen = sizeText(size) + ", 64-bit";
  const std::string config = readConfig(view.root(), gpu);
  const auto largest = largestResizableBar(config);
  if (!hasExtendedSpace(config)) {
    results.notObservable(subject, wideBar, seen + "; cannot tell whether the GPU offers more",
                          "sudo vfpass doctor");
  } else if (largest.value_or(0) > size) {
    results.warned(subject, wideBar, seen + "; the GPU offers " + sizeText(*largest), barRemedy);
  } else {
    results.passed(subject, wideBar,
                   seen +
                       ", all that the GPU offers: RDMA can register no more of its memory at "
                       "one time");
  }
}

void checkBars(const View& view, Results& results) {
  for (const std::size_t number : view.gpus()) {
    const Device& gpu = view.function(number);
    const std::string subject = toString(gpu.address);
    const auto text = view.root().readText(View::pathOf(gpu, "resource"));
    if (!text) {
      results.notObservable(subject, wideBar, "no resource file in sysfs", "lspci -vvs " + subject);
      continue;
    }
    const auto bar = memoryBar(*text);
    if (!bar && lacksMemoryBar(view, gpu)) {
      results.waived(subject,
                     "the GPU has no BAR for memory: an integrated one uses the host's memory, "
                     "which NICs reach without it");
    } else if (!bar || bar->start == 0 || bar->bytes == 0) {
      results.failedIfUsed(view.uses(number), subject, wideBar,
                           "no prefetchable BAR has an address", barRemedy);
    } else if ((bar->flags & wideResource) == 0) {
      results.failedIfUsed(view.uses(number), subject, wideBar, sizeText(bar->bytes) + ", 32-bit",
                           barRemedy);
    } else if (bar->bytes <= smallBar) {
      judgeSmallBar(view, gpu, bar->bytes, results);
    } else {
      results.passed(subject, wideBar, sizeText(bar->bytes) + ", 64-bit");
    }
  }
}

void checkConsole(const View& view, Results& results) {
  for (const std::size_t number : view.gpus()) {
    const Device& gpu = view.function(number);
    const std::string subject = toString(gpu.address);
    if (view.root().readNumber(View::pathOf(gpu, "boot_vga")).value_or(0) == 1) {
      results.failedIfUsed(
          view.uses(number), subject, "not the host's console",
          "the firmware uses it as the primary display",
          "make the onboard graphics primary in the firmware: systemctl reboot --firmware-setup");
    } else {
      results.passed(subject, "not the host's console", "not the console");
    }
  }
}

void checkLegacyPeerMemory(const View& view, Results& results) {
  const std::string expected = "no nv_peer_mem";
  if (view.moduleLoaded("nv_peer_mem")) {
    return results.failed("", expected, "the module is loaded", "modprobe -r nv_peer_mem");
  }
  const std::string folder = "etc/modules-load.d";
  for (const std::string& name : view.root().list(folder)) {
    const auto settings = view.settings(folder + "/" + name);
    if (std::ranges::find(settings, "nv_peer_mem") != settings.end()) {
      return results.failed("/" + folder + "/" + name, expected, "loaded at boot",
                            "remove the line nv_peer_mem from /" + folder + "/" + printable(name));
    }
  }
  if (view.root().exists("etc/init.d/nv_peer_mem")) {
    return results.failed(
        "/etc/init.d/nv_peer_mem", expected, "its init script is still installed",
        removePackage(view, {"nvidia-peer-memory-dkms", "nvidia_peer_memory", "nvidia_peer_memory"},
                      "the package nvidia-peer-memory"));
  }
  results.passed("", expected, "none");
}

// The other functions on its bus; none on a root bus, which cannot be reset.
std::vector<PciAddress> neighbours(const View& view, const Device& gpu) {
  std::vector<PciAddress> found;
  for (const Device& other : view.topology().functions) {
    if (gpu.parent && other.parent == gpu.parent && other.address != gpu.address) {
      found.push_back(other.address);
    }
  }
  return found;
}

std::vector<std::string> unmapped(const View& view, const std::vector<PciAddress>& functions) {
  std::vector<std::string> found;
  for (const PciAddress& function : functions) {
    if (std::ranges::find(view.requirements().functions, function) ==
        view.requirements().functions.end()) {
      found.push_back(toString(function));
    }
  }
  return found;
}

// A function that is alone on a bus that can be reset has the method `bus`.
void checkBusReset(const View& view, std::size_t number, const std::string& expected,
                   Results& results) {
  const Device& gpu = view.function(number);
  const std::string subject = toString(gpu.address);
  const auto others = neighbours(view, gpu);
  const auto foreign = unmapped(view, others);
  if (others.empty()) {
    results.failedIfUsed(view.uses(number), subject, expected, "no reset method",
                         "reboot the host between two guests, or use another GPU");
  } else if (!foreign.empty()) {
    results.failedIfUsed(
        view.uses(number), subject, expected,
        "no reset method; its bus could be reset, but is shared with " + join(foreign, ", "),
        "add these functions to `functions:` of the same mapping");
  } else {
    results.passed(subject, expected, "no reset method; reset with its bus");
  }
}

// Checks that the GPU can be reset between two guests.
void checkReset(const View& view, std::size_t number, Results& results) {
  const Device& gpu = view.function(number);
  const std::string subject = toString(gpu.address);
  const std::string expected = "a reset method, so that no data remains for the next guest";
  const auto methods = host::readResetMethods(view.root(), "sys/devices/" + gpu.path);
  if (!methods) {
    return results.notObservable(
        subject, expected, "no reset_method in sysfs",
        "on Linux 5.15 or later: cat /sys/bus/pci/devices/" + subject + "/reset_method");
  }
  if (!methods->empty()) {
    return results.passed(subject, expected, join(*methods, ", "));
  }
  checkBusReset(view, number, expected, results);
}

void checkGpuResets(const View& view, Results& results) {
  for (const std::size_t number : view.gpus()) {
    checkReset(view, number, results);
  }
}

std::string withoutNvlinkBoard(const View& view) {
  const auto board = topology::nvlinkBoard(view.topology());
  if (board.gpus.empty()) {
    return "no NVSwitch among the PCI functions";
  }
  return view.requirements().nvlink.empty()
             ? "a board with " + topology::describe(board) + "; no mapping uses any of them"
             : "";
}

// On a board with NVSwitches, checks that the GPUs of mappings can initialize.
void checkNvlink(const View& view, Results& results) {
  const std::string expected =
      "GPUs that can initialize: with the whole board, as a partition, or with NVLink disabled";
  for (const NvlinkRequirement& required : view.requirements().nvlink) {
    const auto& [vm, judgement, unrecorded] = required;
    for (const auto& fault : judgement.faults) {
      results.failed(vm, expected, fault.message, fault.remedy);
    }
    if (!judgement.faults.empty()) {
      continue;
    }
    if (judgement.partition.empty()) {
      results.passed(vm, expected, judgement.summary);
    } else {
      checkPartition(view, required, results);
    }
  }
}

constexpr std::array gpuTable{
    Check{"gpu-bar", "NICs reach GPU memory through this BAR, in the guest too", withoutGpu,
          checkBars},
    Check{"gpu-driver", "unbinding hangs while a process has the GPU open", withoutGpu,
          checkGpuDrivers},
    Check{"gpu-reset", "data that a guest leaves in a GPU must not reach the next guest",
          withoutGpu, checkGpuResets},
    Check{"gpu-nvlink", "CUDA fails with error 802 on GPUs whose NVSwitches are not set up",
          withoutNvlinkBoard, checkNvlink},
    Check{"gpu-console", "a guest that gets the GPU takes the host's console away", withoutGpu,
          checkConsole},
    Check{"nv-peer-mem", "the obsolete module conflicts with nvidia_peermem", withoutNvidiaGpu,
          checkLegacyPeerMemory}};

}  // namespace

// The drivers of AMD (amdgpu) and Intel (xe) export GPU memory by dma-buf, which RDMA registers
// without a module of its own (ib_umem_dmabuf_get).
std::string withoutNvidiaGpu(const View& view) {
  const bool any = std::ranges::any_of(
      view.gpus(), [&](std::size_t gpu) { return view.function(gpu).vendor == nvidia; });
  return any || view.gpus().empty() ? ""
                                    : "no NVIDIA GPU: the drivers of others give RDMA their memory "
                                      "by dma-buf, without nvidia_peermem";
}

std::span<const Check> gpuChecks() { return gpuTable; }

}  // namespace vfpass::doctor
