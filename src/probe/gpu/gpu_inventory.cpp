#include "gpu/gpu_inventory.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gpu/cuda_driver.hpp"
#include "vfpass/base/shared_library.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

using NvmlDevice = struct NvmlDeviceTag*;

// nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 (NVML API reference manual).
struct NvmlPciInfo {
  std::array<char, 16> legacyAddress;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned deviceId;
  unsigned subsystemId;
  std::array<char, 32> address;
};

class Nvml {
 public:
  explicit Nvml(const std::vector<std::string>& libraries) : library_(libraries, "") {
    library_.require(initialize_, "nvmlInit_v2");
    library_.require(shutdown_, "nvmlShutdown");
    library_.require(count_, "nvmlDeviceGetCount_v2");
    library_.require(byIndex_, "nvmlDeviceGetHandleByIndex_v2");
    library_.require(pciInfo_, "nvmlDeviceGetPciInfo_v3");
    library_.require(migMode_, "nvmlDeviceGetMigMode");
    library_.require(maxMig_, "nvmlDeviceGetMaxMigDeviceCount");
    library_.require(migDevice_, "nvmlDeviceGetMigDeviceHandleByIndex");
    if (initialize_() != 0) {
      throw Error("cannot initialize NVML", "");
    }
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() { shutdown_(); }

  [[nodiscard]] std::vector<MigState> read() const {
    constexpr unsigned maxGpus = 64;
    unsigned count = 0;
    std::vector<MigState> states;
    for (unsigned i = 0; count_(&count) == 0 && i < std::min(count, maxGpus); ++i) {
      NvmlDevice device = nullptr;
      NvmlPciInfo pci{};
      unsigned current = 0;
      unsigned pending = 0;
      // GPUs without MIG return NVML_ERROR_NOT_SUPPORTED.
      if (byIndex_(i, &device) == 0 && pciInfo_(device, &pci) == 0 &&
          migMode_(device, &current, &pending) == 0) {
        pci.address.back() = '\0';
        states.push_back({toLower(pci.address.data()), current == 1, instancesOf(device)});
      }
    }
    return states;
  }

 private:
  [[nodiscard]] unsigned instancesOf(NvmlDevice device) const {
    constexpr unsigned maxInstances = 64;
    unsigned limit = 0;
    unsigned found = 0;
    if (maxMig_(device, &limit) != 0) {
      return 0;
    }
    for (unsigned i = 0; i < std::min(limit, maxInstances); ++i) {
      NvmlDevice instance = nullptr;
      found += migDevice_(device, i, &instance) == 0 ? 1U : 0U;
    }
    return found;
  }

  SharedLibrary library_;
  int (*initialize_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*byIndex_)(unsigned, NvmlDevice*) = nullptr;
  int (*pciInfo_)(NvmlDevice, NvmlPciInfo*) = nullptr;
  int (*migMode_)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*maxMig_)(NvmlDevice, unsigned*) = nullptr;
  int (*migDevice_)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
};

/// Size of NVIDIA's BAR1, the window through which other devices access the GPU's memory. It is the
/// GPU's second BAR; since Hopper the first one also takes two of the six registers.
std::uint64_t memoryWindow(const PciFunction& function) {
  const auto found = std::ranges::find_if(
      function.bars, [](const PciBar& bar) { return bar.number == 1 || bar.number == 2; });
  return found == function.bars.end() ? 0 : found->bytes;
}

Json barsOf(const PciFunction& function) {
  Json bars = Json::array();
  for (const PciBar& bar : function.bars) {
    bars.push_back({{"number", bar.number}, {"bytes", bar.bytes}, {"assigned", bar.assigned}});
  }
  return bars;
}

Json attributeOf(const CudaDriver& driver, CudaDevice device, CudaAttribute attribute) {
  int value = 0;
  return driver.deviceAttribute(&value, attribute, device) == 0 ? Json(value) : Json(nullptr);
}

Json describeGpu(const CudaDriver& driver, int index) {
  CudaDevice device = 0;
  driver.require(driver.deviceGet(&device, index), "cannot open GPU " + std::to_string(index));
  const std::string name = nameOf(driver, device);
  std::size_t memory = 0;
  driver.require(driver.deviceTotalMemory(&memory, device), "cannot read the GPU's memory size");
  const auto attribute = [&](CudaAttribute wanted) { return attributeOf(driver, device, wanted); };
  return {
      {"index", index},
      {"name", name},
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
    driver.require(driver.driverVersion(&version), "cannot read the CUDA version");
    result["libcuda"]["cuda_version"] = version;
    driver.require(driver.deviceCount(&count), "cannot count GPUs");
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

/// Whether the kernel has the interface without which nvidia_peermem refuses to load (EINVAL): it
/// comes with MLNX_OFED or a patched kernel, and is part of ib_core. null: unknown.
Json hasPeerMemoryInterface(const SysfsReader& sysfs) {
  if (!sysfs.exists("/sys/module/ib_core")) {
    return nullptr;
  }
  const auto found = sysfs.contains("/proc/kallsyms", " ib_register_peer_memory_client");
  return found ? Json(*found) : Json(nullptr);
}

/// Adds what PCI shows, also of GPUs that libcuda did not report.
void addPciGpus(Json& result, const std::vector<PciFunction>& functions,
                const std::vector<MigState>& mig) {
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
    (*known)["bars"] = barsOf(function);
    for (const MigState& state : mig) {
      if (sameFunction(function.address, state.pci)) {
        (*known)["mig"] = {{"enabled", state.enabled}, {"instances", state.instances}};
      }
    }
  }
}

}  // namespace

std::vector<MigState> readMigStates(const std::vector<std::string>& libraries) {
  try {
    return Nvml(libraries).read();
  } catch (const Error&) {
    return {};
  }
}

GpuSurroundings readGpuSurroundings(const SysfsReader& sysfs,
                                    const std::vector<PciFunction>& functions) {
  GpuSurroundings surroundings;
  std::ranges::copy_if(functions, std::back_inserter(surroundings.gpus), &PciFunction::isGpu);
  // The proprietary module and older open ones have no version file.
  if (sysfs.exists("/sys/module/nvidia")) {
    const std::string version = sysfs.textOrEmpty("/sys/module/nvidia/version");
    surroundings.moduleVersion = version.empty() ? "unknown" : version;
  }
  surroundings.uvm = sysfs.exists("/sys/module/nvidia_uvm") && sysfs.exists("/dev/nvidia-uvm");
  surroundings.mig = readMigStates();
  return surroundings;
}

Json gpuInventory(const std::vector<PciFunction>& functions, const GpuSurroundings& surroundings,
                  const std::vector<std::string>& libraries) {
  Json result = readCuda(surroundings, libraries);
  addPciGpus(result, functions, surroundings.mig);
  return result;
}

Json pciGpuInventory(const std::vector<PciFunction>& functions) {
  Json result{{"libcuda", {{"found", false}, {"detail", "not asked: --no-gpus"}}},
              {"devices", Json::array()}};
  addPciGpus(result, functions, {});
  return result;
}

Json gpuKernelInventory(const SysfsReader& sysfs) {
  const bool loaded = sysfs.exists("/sys/module/nvidia_peermem") ||
                      sysfs.exists("/sys/kernel/mm/memory_peers/nv_mem") ||
                      sysfs.exists("/sys/kernel/mm/memory_peers/nv_mem_nc");
  return {{"driver_version", sysfs.textOrEmpty("/sys/module/nvidia/version")},
          {"driver", sysfs.textOrEmpty("/proc/driver/nvidia/version")},
          {"nvidia_peermem",
           {{"loaded", loaded},
            {"loadable", loaded || isLoadable(sysfs)},
            {"interface", hasPeerMemoryInterface(sysfs)}}}};
}

namespace {

/// Below `/sys/devices/pci0000:00/` without a port in between.
bool isOnRootBus(const PciFunction& function) {
  return std::ranges::count(function.path, '/') == 4;
}

bool isMigWithoutInstance(const MigState& state) { return state.enabled && state.instances == 0; }

/// The kernel's part of a status that only says that CUDA found nothing usable.
std::optional<CudaProblem> kernelProblem(const GpuSurroundings& surroundings) {
  if (surroundings.gpus.empty()) {
    return CudaProblem::noGpu;
  }
  if (surroundings.moduleVersion.empty()) {
    return CudaProblem::moduleNotLoaded;
  }
  if (std::ranges::none_of(surroundings.gpus,
                           [](const PciFunction& gpu) { return gpu.driver == "nvidia"; })) {
    return CudaProblem::notBound;
  }
  return std::nullopt;
}

CudaProblem refine(CudaProblem problem, const GpuSurroundings& surroundings) {
  if (problem == CudaProblem::noDevice &&
      std::ranges::any_of(surroundings.mig, isMigWithoutInstance)) {
    return CudaProblem::migWithoutInstance;
  }
  if (problem == CudaProblem::notInitialized &&
      std::ranges::any_of(surroundings.gpus, isOnRootBus)) {
    return CudaProblem::onRootBus;
  }
  if (problem == CudaProblem::unknown && !surroundings.uvm) {
    return CudaProblem::uvmMissing;
  }
  return problem;
}

}  // namespace

CudaProblem diagnoseCuda(std::optional<int> status, const GpuSurroundings& surroundings) {
  if (!status) {
    return surroundings.moduleVersion.empty() ? CudaProblem::driverMissing
                                              : CudaProblem::libraryMissing;
  }
  const CudaProblem problem = cudaProblemOf(*status);
  switch (problem) {
    case CudaProblem::noDevice:
    case CudaProblem::notInitialized:
    case CudaProblem::osCallFailed:
    case CudaProblem::unknown:
      return kernelProblem(surroundings).value_or(refine(problem, surroundings));
    default:
      return problem;
  }
}

}  // namespace vfpass::probe
