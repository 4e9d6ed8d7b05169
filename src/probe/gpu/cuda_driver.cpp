#include "gpu/cuda_driver.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "transfer/pattern_formula.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr CudaStatus success = 0;

}  // namespace

std::vector<std::string> CudaDriver::usualLibraries() {
  return {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
}

CudaDriver::CudaDriver(const std::vector<std::string>& libraries)
    : library_(libraries, "install NVIDIA's GPU driver in the guest") {
  library_.require(initialize_, "cuInit");
  library_.require(errorName_, "cuGetErrorName");
  library_.require(errorString_, "cuGetErrorString");
  findDeviceFunctions();
  findMemoryFunctions();
  findKernelFunctions();
  findStreamFunctions();
  require(initialize_(0), "cannot initialize CUDA");
}

void CudaDriver::findDeviceFunctions() {
  library_.require(driverVersion, "cuDriverGetVersion");
  library_.require(deviceCount, "cuDeviceGetCount");
  library_.require(deviceGet, "cuDeviceGet");
  library_.require(deviceName, "cuDeviceGetName");
  library_.require(deviceAttribute, "cuDeviceGetAttribute");
  library_.require(devicePciBusId, "cuDeviceGetPCIBusId");
  library_.require(deviceTotalMemory, "cuDeviceTotalMem_v2");
  library_.require(primaryContextRetain, "cuDevicePrimaryCtxRetain");
  library_.require(primaryContextRelease, "cuDevicePrimaryCtxRelease_v2");
  library_.require(contextSetCurrent, "cuCtxSetCurrent");
  library_.require(contextSynchronize, "cuCtxSynchronize");
}

void CudaDriver::findMemoryFunctions() {
  library_.require(memoryAllocate, "cuMemAlloc_v2");
  library_.require(memoryFree, "cuMemFree_v2");
  library_.require(memoryCopyIn, "cuMemcpyHtoD_v2");
  library_.require(memoryCopyOut, "cuMemcpyDtoH_v2");
  library_.require(memorySet8, "cuMemsetD8_v2");
  library_.require(memorySet32, "cuMemsetD32_v2");
  library_.require(pointerSetAttribute, "cuPointerSetAttribute");
  library_.find(flushRdmaWrites, "cuFlushGPUDirectRDMAWrites");
  library_.find(memoryRangeHandle, "cuMemGetHandleForAddressRange");
}

void CudaDriver::findKernelFunctions() {
  library_.require(moduleLoad, "cuModuleLoadDataEx");
  library_.require(moduleUnload, "cuModuleUnload");
  library_.require(moduleFunction, "cuModuleGetFunction");
  library_.require(launch, "cuLaunchKernel");
  library_.require(eventCreate, "cuEventCreate");
  library_.require(eventDestroy, "cuEventDestroy_v2");
  library_.require(eventRecord, "cuEventRecord");
  library_.require(eventSynchronize, "cuEventSynchronize");
  library_.require(eventElapsed, "cuEventElapsedTime");
}

void CudaDriver::findStreamFunctions() {
  library_.find(streamCreate, "cuStreamCreate");
  library_.find(streamDestroy, "cuStreamDestroy_v2");
  library_.find(streamQuery, "cuStreamQuery");
  library_.find(memoryInfo, "cuMemGetInfo_v2");
}

std::string CudaDriver::describe(CudaStatus status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (errorName_(status, &name) != success || errorString_(status, &text) != success) {
    return "CUDA status " + std::to_string(status);
  }
  return std::string(text) + " (" + name + ")";
}

void CudaDriver::require(CudaStatus status, const std::string& what) const {
  if (status != success) {
    throw CudaError(status, what + ": " + describe(status),
                    "check nvidia-smi and the guest's dmesg");
  }
}

namespace {

std::vector<CudaDevice> allGpus(const CudaDriver& driver) {
  int count = 0;
  driver.require(driver.deviceCount(&count), "cannot count GPUs");
  std::vector<CudaDevice> devices;
  for (int index = 0; index < count; ++index) {
    CudaDevice device = 0;
    driver.require(driver.deviceGet(&device, index), "cannot open GPU " + std::to_string(index));
    devices.push_back(device);
  }
  return devices;
}

bool matches(const CudaDriver& driver, CudaDevice device, std::size_t index,
             const GpuChoice& choice) {
  if (const int* wanted = std::get_if<int>(&choice)) {
    return static_cast<std::size_t>(*wanted) == index;
  }
  return parsePciAddress(pciAddressOf(driver, device)) == std::get<PciAddress>(choice);
}

// `GPU-` and hexadecimal digits; question marks instead of digits for a GPU that nobody has used.
std::string uuidOf(const PciAddress& address, const SysfsReader& files) {
  constexpr std::string_view key = "GPU UUID:";
  const std::string path = "/proc/driver/nvidia/gpus/" + toString(address) + "/information";
  for (const std::string& line : splitLines(files.textOrEmpty(path))) {
    if (line.starts_with(key)) {
      const std::string uuid(trim(std::string_view(line).substr(key.size())));
      return uuid.starts_with("GPU-") && uuid.find('?') == std::string::npos ? uuid : "";
    }
  }
  return "";
}

// The same values as in gpu/kernels.cu.
constexpr unsigned blockThreads = 256;
constexpr unsigned long long tileBytes = 16ULL * blockThreads * 8;

}  // namespace

GpuChoice parseGpuChoice(std::string_view text) {
  constexpr unsigned maxIndex = 1023;
  if (const auto index = parseNumber(text); index && *index <= maxIndex) {
    return static_cast<int>(*index);
  }
  if (const auto address = parsePciAddress(text)) {
    return *address;
  }
  throw Error("invalid GPU " + printable(text),
              "use a CUDA device index such as 0, or a PCI address in the guest such as "
              "0000:05:00.0",
              ExitCode::badInput);
}

std::string describe(const GpuChoice& choice) {
  if (const int* index = std::get_if<int>(&choice)) {
    return "GPU " + std::to_string(*index);
  }
  return "GPU " + toString(std::get<PciAddress>(choice));
}

void hideOtherGpus(const GpuChoice& choice, const SysfsReader& files) {
  const auto* address = std::get_if<PciAddress>(&choice);
  if (address == nullptr) {
    return;
  }
  constexpr int keepExisting = 0;
  const std::string uuid = uuidOf(*address, files);
  if (!uuid.empty()) {
    ::setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), keepExisting);
  }
}

std::string nameOf(const CudaDriver& driver, CudaDevice device) {
  std::array<char, 256> text{};
  driver.require(driver.deviceName(text.data(), text.size() - 1, device),
                 "cannot read the GPU's name");
  return text.data();
}

std::string pciAddressOf(const CudaDriver& driver, CudaDevice device) {
  std::array<char, 32> text{};
  driver.require(driver.devicePciBusId(text.data(), text.size() - 1, device),
                 "cannot read the GPU's PCI address");
  return toLower(text.data());
}

CudaDevice findGpu(const CudaDriver& driver, const GpuChoice& choice) {
  // Compared here and not by cuDeviceGetByPCIBusId, which returns the same error for an address
  // that it cannot read and for one without a GPU.
  const std::vector<CudaDevice> devices = allGpus(driver);
  std::vector<std::string> others;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    if (matches(driver, devices[index], index, choice)) {
      return devices[index];
    }
    others.push_back(std::to_string(index) + " (" + pciAddressOf(driver, devices[index]) + ")");
  }
  throw Error("cannot open " + describe(choice) + ": CUDA has " +
                  (others.empty() ? "no GPU" : "only " + join(others, ", ")),
              others.empty() ? "run `vfpass-probe inventory` and see gpus.libcuda"
                             : "choose one of these; `vfpass-probe inventory` shows GPUs that CUDA "
                               "does not have");
}

Gpu::Gpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice)
    : driver_(std::move(driver)), device_(findGpu(*driver_, choice)) {
  driver_->require(driver_->primaryContextRetain(&context_, device_),
                   "cannot create a context on " + describe(choice));
  try {
    makeCurrent();
    loadKernels();
  } catch (...) {
    driver_->primaryContextRelease(device_);
    throw;
  }
}

Gpu::~Gpu() {
  driver_->contextSetCurrent(context_);
  driver_->moduleUnload(module_);
  driver_->primaryContextRelease(device_);
}

void Gpu::loadKernels() {
  constexpr int jitErrorLog = 5;       // CU_JIT_ERROR_LOG_BUFFER
  constexpr int jitErrorLogBytes = 6;  // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
  std::array<char, 4096> log{};
  std::array<int, 2> options{jitErrorLog, jitErrorLogBytes};
  // The driver expects the size in place of a pointer.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const CudaStatus status =
      driver_->moduleLoad(&module_, kernelsPtx, options.size(), options.data(), values.data());
  if (status != 0) {
    throw Error("cannot load the kernels into the GPU: " + driver_->describe(status) + " " +
                    printable(trim(log.data())),
                "install a newer GPU driver; R470 and later are known to work");
  }
  driver_->require(driver_->moduleFunction(&fill_, module_, "vfpassFill"),
                   "cannot find kernel vfpassFill");
  driver_->require(driver_->moduleFunction(&check_, module_, "vfpassCheck"),
                   "cannot find kernel vfpassCheck");
}

int Gpu::attribute(CudaAttribute attribute) const {
  int value = 0;
  driver_->require(driver_->deviceAttribute(&value, attribute, device_),
                   "cannot read GPU attribute " + std::to_string(static_cast<int>(attribute)));
  return value;
}

void Gpu::makeCurrent() const {
  driver_->require(driver_->contextSetCurrent(context_), "cannot enter the GPU's context");
}

void Gpu::launch(CudaFunction function, const GpuMessages& messages, std::uint64_t seed,
                 unsigned long long last) const {
  constexpr unsigned long long maxColumns = 0x7fffffff;  // grid limits of every GPU
  constexpr unsigned long long maxRows = 65535;
  GpuMessages place = messages;
  unsigned long long key = patternKey(seed);
  std::array<void*, 7> arguments{&place.base,         &place.stride, &place.size, &place.count,
                                 &place.firstMessage, &key,          &last};
  // One tile for each block: the GPU's scheduler distributes them best.
  const auto columns =
      static_cast<unsigned>(std::clamp((place.size + tileBytes - 1) / tileBytes, 1ULL, maxColumns));
  const auto rows = static_cast<unsigned>(std::clamp(place.count, 1ULL, maxRows));
  driver_->require(driver_->launch(function, columns, rows, 1, blockThreads, 1, 1, 0, nullptr,
                                   arguments.data(), nullptr),
                   "cannot start a kernel");
}

void Gpu::startFill(const GpuMessages& messages, std::uint64_t seed,
                    std::uint64_t inversion) const {
  launch(fill_, messages, seed, inversion);
}

void Gpu::startCheck(const GpuMessages& messages, std::uint64_t seed, CudaAddress results) const {
  launch(check_, messages, seed, results);
}

void Gpu::wait() const {
  driver_->require(driver_->contextSynchronize(), "cannot wait for the GPU");
}

void Gpu::flushForeignWrites() const {
  constexpr int visibleToOwner = 100;  // CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER, and the scope
  constexpr int currentContext = 0;    // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX
  constexpr int hostCanFlush = 1;      // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST
  const bool ordered = attribute(CudaAttribute::gpuDirectRdmaWritesOrdering) >= visibleToOwner;
  const bool flushable = driver_->flushRdmaWrites != nullptr &&
                         (attribute(CudaAttribute::gpuDirectRdmaFlushOptions) & hostCanFlush) != 0;
  // Without either, this relies on a kernel seeing what arrived before it started.
  if (ordered || !flushable) {
    return;
  }
  driver_->require(driver_->flushRdmaWrites(currentContext, visibleToOwner),
                   "cannot flush other devices' writes to GPU memory");
}

std::shared_ptr<const Gpu> openGpu(const GpuChoice& choice) {
  hideOtherGpus(choice);
  return std::make_shared<const Gpu>(std::make_shared<const CudaDriver>(), choice);
}

}  // namespace vfpass::probe
