#include "system/guest_inventory.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "gpu/cuda_driver.hpp"
#include "gpu/gpu_inventory.hpp"
#include "rdma/rdma_devices.hpp"
#include "system/pci_functions.hpp"
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

}  // namespace vfpass::probe
