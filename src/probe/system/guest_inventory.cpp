#include "system/guest_inventory.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cuda_driver.hpp"
#include "gpu/gpu_inventory.hpp"
#include "rdma/rdma_devices.hpp"
#include "system/sysfs_reader.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

/// Offset of the control register in the ACS and ATS capabilities (PCI Express Base Specification).
/// The highest bit of the ATS register enables ATS.
constexpr std::size_t controlOffset = 6;
constexpr std::uint16_t atsEnabled = 0x8000;

Json capability(const PciFunction& function, std::uint16_t which) {
  if (!hasExtendedSpace(function.config)) {
    return {{"present", nullptr}, {"detail", "cannot read the extended configuration space"}};
  }
  const auto place = findExtendedCapability(function.config, which);
  if (!place) {
    return {{"present", false}};
  }
  return {{"present", true},
          {"control", configWord(function.config, *place + controlOffset).value_or(0)}};
}

Json toJson(const PciFunction& function) {
  Json result{{"address", function.address},   {"class", function.deviceClass},
              {"vendor", function.vendor},     {"device", function.device},
              {"driver", function.driver},     {"path", function.path},
              {"numa_node", function.numaNode}};
  if (const auto packets = findPciePackets(function.config)) {
    result["express"] = {{"max_payload", packets->payload},
                         {"max_payload_supported", packets->payloadSupported},
                         {"max_read_request", packets->readRequest}};
  }
  result["acs"] = capability(function, accessControlServices);
  result["ats"] = capability(function, addressTranslationServices);
  if (result["ats"].contains("control")) {
    result["ats"]["enabled"] = (result["ats"]["control"].get<unsigned>() & atsEnabled) != 0;
  }
  return result;
}

/// The PCI function that a class device belongs to; a virtio device sits between the two.
std::string pciOf(const SysfsReader& sysfs, const std::string& folder) {
  std::istringstream path(sysfs.resolved(folder + "/device"));
  std::string found;
  for (std::string part; std::getline(path, part, '/');) {
    found = parsePciAddress(part) ? part : found;
  }
  return found;
}

Json networkDevices(const SysfsReader& sysfs) {
  Json devices = Json::array();
  for (const std::string& name : sysfs.names("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + name;
    const auto mtu = parseNumber(sysfs.textOrEmpty(folder + "/mtu"));
    devices.push_back({{"name", name},
                       {"mac", sysfs.textOrEmpty(folder + "/address")},
                       {"mtu", mtu ? Json(*mtu) : Json(nullptr)},
                       {"state", sysfs.textOrEmpty(folder + "/operstate")},
                       {"pci", pciOf(sysfs, folder)},
                       {"driver", sysfs.linkName(folder + "/device/driver")}});
  }
  return devices;
}

/// Distances between each network function and each GPU.
Json distances(const std::vector<PciFunction>& functions) {
  Json result = Json::array();
  for (const PciFunction& nic : functions) {
    for (const PciFunction& gpu : functions) {
      if (nic.isNetwork() && gpu.isGpu()) {
        result.push_back(
            {{"nic", nic.address}, {"gpu", gpu.address}, {"distance", pciDistance(nic, gpu)}});
      }
    }
  }
  return result;
}

/// The probe's own SELinux context, which may keep it from opening devices. Its type may not be
/// allowed to read the mode.
Json selinux(const SysfsReader& sysfs) {
  std::string context = sysfs.textOrEmpty("/proc/self/attr/current");
  context.resize(std::min(context.find('\0'), context.size()));
  const auto enforce = sysfs.text("/sys/fs/selinux/enforce");
  return {{"context", context}, {"enforcing", enforce ? Json(*enforce == "1") : Json(nullptr)}};
}

}  // namespace

Json readInventory(const SysfsReader& sysfs, GpuLibraries libraries) {
  const auto functions = readPciFunctions(sysfs);
  Json result;
  result["kernel"] = sysfs.textOrEmpty("/proc/sys/kernel/osrelease");
  result["pci"] = Json::array();
  for (const PciFunction& function : functions) {
    result["pci"].push_back(toJson(function));
  }
  result["netdevs"] = networkDevices(sysfs);
  result["rdma"] = rdmaInventory(sysfs);
  result["gpus"] = libraries == GpuLibraries::skip
                       ? pciGpuInventory(functions)
                       : gpuInventory(functions, readGpuSurroundings(sysfs, functions),
                                      CudaDriver::usualLibraries());
  result["gpus"].update(gpuKernelInventory(sysfs));
  result["distances"] = distances(functions);
  result["nccl"] = readNcclSettings(sysfs);
  result["newer_kernels"] = readNewerKernels(sysfs);
  result["memory_lock"] = readMemoryLock(sysfs);
  if (sysfs.exists("/sys/fs/selinux")) {
    result["selinux"] = selinux(sysfs);
  }
  return result;
}

Json readErrors(const SysfsReader& sysfs) {
  return {{"rdma", rdmaCounters(sysfs)}, {"kernel_log", readKernelLog(sysfs)}};
}

namespace {

constexpr std::size_t maxLines = 48;
constexpr std::size_t longestLine = 256;

/// Parts of lines that explain failures, in lower case.
constexpr std::array<std::string_view, 16> topics{
    "nvrm", "nvidia", "peer_mem", "peermem", "mlx5",  "mlx4", "infiniband",   "ib_core",
    "rdma", "rxe",    "dmar",     "amd-vi",  "iommu", "smmu", "can't assign", "failed to assign"};

bool isAboutTopic(std::string_view text) {
  const std::string lower = toLower(text);
  return std::ranges::any_of(
      topics, [&](std::string_view topic) { return lower.find(topic) != std::string::npos; });
}

}  // namespace

nlohmann::json readKernelLog(const SysfsReader& sysfs) {
  std::deque<std::string> lines;
  const bool read = sysfs.eachRecord("/dev/kmsg", [&](std::string_view record) {
    for (const std::string& line : splitLines(record)) {
      const std::string_view text = kernelText(line);
      if (!isAboutTopic(text) || explainsNothing(text)) {
        continue;
      }
      lines.push_back(printable(text.substr(0, longestLine)));
      if (lines.size() > maxLines) {
        lines.pop_front();
      }
    }
  });
  return read ? nlohmann::json(lines) : nlohmann::json(nullptr);
}

namespace {

constexpr std::array modules{"mlx5_core", "mlx5_ib",    "mlx4_ib",        "ib_uverbs",   "rdma_ucm",
                             "nvidia",    "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "gdrdrv",
                             "irdma",     "bnxt_re",    "rdma_rxe"};

/// The letters of a release, which differ between flavours (generic, cloud-amd64, rt) and not
/// between versions of one (el9_4, el9_5).
std::string flavourOf(const std::string& release) {
  std::string letters;
  std::ranges::copy_if(release, std::back_inserter(letters), [](char each) {
    return std::isalpha(static_cast<unsigned char>(each)) != 0;
  });
  return letters;
}

/// Removed kernels leave directories behind. Fedora and its relatives keep the kernel beside its
/// modules.
bool isInstalled(const SysfsReader& sysfs, const std::string& release) {
  return sysfs.exists("/lib/modules/" + release + "/vmlinuz") ||
         sysfs.exists("/boot/vmlinuz-" + release) || sysfs.exists("/boot/vmlinux-" + release);
}

/// depmod(8) writes the paths of all modules and of the built-in ones; names have dashes or
/// underscores.
std::optional<bool> has(const SysfsReader& sysfs, const std::string& release,
                        const std::string& module) {
  const std::string folder = "/lib/modules/" + release;
  std::string dashed = module;
  std::ranges::replace(dashed, '_', '-');
  bool known = false;
  for (const char* list : {"/modules.dep", "/modules.builtin"}) {
    for (const std::string& name : {module, dashed}) {
      const auto found = sysfs.contains(folder + list, "/" + name + ".ko");
      known = known || found;
      if (found.value_or(false)) {
        return true;
      }
    }
  }
  return known ? std::optional(false) : std::nullopt;
}

Json missingIn(const SysfsReader& sysfs, const std::string& release, const std::string& running) {
  Json missing = Json::array();
  for (const char* module : modules) {
    if (!sysfs.exists(std::string("/sys/module/") + module)) {
      continue;
    }
    // A module that was loaded from a file of another name (Debian's nvidia-current.ko) or place
    // cannot be found in any list.
    const auto found = has(sysfs, release, module);
    if (!found) {
      return nullptr;
    }
    if (!*found && has(sysfs, running, module).value_or(false)) {
      missing.push_back(module);
    }
  }
  return missing;
}

/// The numbers at the beginning: 6, 1, 0, 21 of `6.1.0-21-amd64`; 4, 18, 0, 305, 3, 1 of
/// `4.18.0-305.3.1.el8_4.x86_64`, which is newer than `4.18.0-305.el8.x86_64`.
std::vector<std::uint64_t> numbersOf(std::string_view release) {
  std::vector<std::uint64_t> numbers;
  while (!release.empty()) {
    const auto end = std::min(release.find_first_not_of("0123456789"), release.size());
    const auto number = parseNumber(release.substr(0, end));
    if (!number) {
      break;
    }
    numbers.push_back(*number);
    const bool goesOn = end < release.size() && (release[end] == '.' || release[end] == '-');
    release = goesOn ? release.substr(end + 1) : std::string_view{};
  }
  return numbers;
}

}  // namespace

Json readNewerKernels(const SysfsReader& sysfs) {
  constexpr std::size_t most = 16;
  const std::string running = sysfs.textOrEmpty("/proc/sys/kernel/osrelease");
  Json kernels = Json::array();
  for (const std::string& release : sysfs.names("/lib/modules")) {
    if (kernels.size() < most && numbersOf(release) > numbersOf(running) &&
        flavourOf(release) == flavourOf(running) && isInstalled(sysfs, release)) {
      kernels.push_back({{"release", release}, {"missing", missingIn(sysfs, release, running)}});
    }
  }
  return kernels;
}

}  // namespace vfpass::probe
