#include "gpu/gpu_inventory.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gpu/cuda_driver.hpp"
#include "gpu/gpu_choice.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

/// Size of NVIDIA's BAR1, the window through which other devices access the GPU's memory. It is the
/// GPU's second BAR; since Hopper the first one also takes two of the six registers.
std::uint64_t memoryWindow(const PciFunction& function) {
  std::vector<std::uint64_t> used;
  std::ranges::copy_if(function.bars, std::back_inserter(used),
                       [](std::uint64_t size) { return size != 0; });
  return used.size() > 1 ? used[1] : 0;
}

Json attributeOf(const CudaDriver& driver, CudaDevice device, CudaAttribute attribute) {
  int value = 0;
  return driver.deviceAttribute(&value, attribute, device) == 0 ? Json(value) : Json(nullptr);
}

Json describeGpu(const CudaDriver& driver, int index) {
  CudaDevice device = 0;
  driver.check(driver.deviceGet(&device, index), "cannot open GPU " + std::to_string(index));
  std::array<char, 256> name{};
  std::size_t memory = 0;
  driver.check(driver.deviceName(name.data(), name.size() - 1, device),
               "cannot read the GPU's name");
  driver.check(driver.deviceTotalMemory(&memory, device), "cannot read the GPU's memory size");
  const auto attribute = [&](CudaAttribute wanted) { return attributeOf(driver, device, wanted); };
  return {
      {"index", index},
      {"name", name.data()},
      {"pci", pciAddressOf(driver, device)},
      {"memory_bytes", memory},
      {"compute_capability", Json::array({attribute(CudaAttribute::computeCapabilityMajor),
                                          attribute(CudaAttribute::computeCapabilityMinor)})},
      {"dma_buf_supported", attribute(CudaAttribute::dmaBufSupported)},
      {"gpudirect_rdma_supported", attribute(CudaAttribute::gpuDirectRdmaSupported)},
      {"gpudirect_rdma_writes_ordering", attribute(CudaAttribute::gpuDirectRdmaWritesOrdering)}};
}

void addProblem(Json& libcuda, const Error& error, std::optional<int> status,
                const GpuSurroundings& surroundings) {
  const CudaProblem problem = diagnoseCuda(status, surroundings);
  libcuda["detail"] = error.what();
  libcuda["code"] = toString(problem);
  libcuda["problem"] = describe(problem);
  libcuda["remedy"] = remedyFor(problem);
}

Json readCuda(const GpuSurroundings& surroundings, const std::vector<std::string>& libraries) {
  Json result{{"libcuda", {{"found", false}, {"detail", ""}}}, {"devices", Json::array()}};
  try {
    const CudaDriver driver(libraries);
    result["libcuda"]["found"] = true;
    int version = 0;
    int count = 0;
    driver.check(driver.driverVersion(&version), "cannot read the CUDA version");
    result["libcuda"]["cuda_version"] = version;
    driver.check(driver.deviceCount(&count), "cannot count GPUs");
    for (int index = 0; index < count; ++index) {
      result["devices"].push_back(describeGpu(driver, index));
    }
  } catch (const CudaError& error) {
    result["libcuda"]["found"] = true;
    result["libcuda"]["status"] = error.status();
    addProblem(result["libcuda"], error, error.status(), surroundings);
  } catch (const Error& error) {
    addProblem(result["libcuda"], error, std::nullopt, surroundings);
  }
  return result;
}

/// Drivers write the domain with four or eight digits, so compare numbers.
bool sameFunction(const std::string& pci, const std::string& cuda) {
  return parsePciAddress(pci) == parsePciAddress(cuda);
}

/// modules.dep lists every module's file, with dashes or underscores in its name.
bool isLoadable(const SysfsReader& sysfs) {
  constexpr std::size_t maxBytes = std::size_t{16} << 20U;
  utsname system{};
  if (::uname(&system) != 0) {
    return false;
  }
  const std::string folder = std::string("/lib/modules/") + system.release;
  const std::string modules = sysfs.bytes(folder + "/modules.dep", maxBytes);
  return modules.find("nvidia-peermem.ko") != std::string::npos ||
         modules.find("nvidia_peermem.ko") != std::string::npos;
}

}  // namespace

Json gpuInventory(const std::vector<PciFunction>& functions, const GpuSurroundings& surroundings,
                  const std::vector<std::string>& libraries) {
  Json result = readCuda(surroundings, libraries);
  for (const PciFunction& function : functions) {
    if (!function.isGpu()) {
      continue;
    }
    Json* known = nullptr;
    for (Json& device : result["devices"]) {
      if (sameFunction(function.address, device.at("pci").get<std::string>())) {
        known = &device;
      }
    }
    if (known == nullptr) {
      result["devices"].push_back({{"pci", function.address}, {"name", nullptr}});
      known = &result["devices"].back();
    }
    (*known)["driver"] = function.driver;
    (*known)["bar1_bytes"] = memoryWindow(function);
    for (const MigState& state : surroundings.mig) {
      if (sameFunction(function.address, state.pci)) {
        (*known)["mig"] = {{"enabled", state.enabled}, {"instances", state.instances}};
      }
    }
  }
  return result;
}

Json gpuKernelInventory(const SysfsReader& sysfs) {
  const bool loaded = sysfs.exists("/sys/module/nvidia_peermem") ||
                      sysfs.exists("/sys/kernel/mm/memory_peers/nv_mem") ||
                      sysfs.exists("/sys/kernel/mm/memory_peers/nv_mem_nc");
  return {{"driver_version", sysfs.textOrEmpty("/sys/module/nvidia/version")},
          {"driver", sysfs.textOrEmpty("/proc/driver/nvidia/version")},
          {"nvidia_peermem", {{"loaded", loaded}, {"loadable", loaded || isLoadable(sysfs)}}}};
}

}  // namespace vfpass::probe
