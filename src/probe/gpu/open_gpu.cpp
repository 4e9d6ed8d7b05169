#include "gpu/open_gpu.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gpu/kernels_ptx.hpp"
#include "transfer/pattern_formula.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

// The same values as in gpu/kernels.cu.
constexpr unsigned blockThreads = 256;
constexpr unsigned long long tileBytes = 16ULL * blockThreads * 8;

constexpr std::uint64_t allocationUnit = std::uint64_t{2} << 20U;

}  // namespace

Gpu::Gpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice)
    : driver_(std::move(driver)), device_(findGpu(*driver_, choice)) {
  driver_->check(driver_->primaryContextRetain(&context_, device_),
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
  driver_->check(driver_->moduleFunction(&fill_, module_, "vfpassFill"),
                 "cannot find kernel vfpassFill");
  driver_->check(driver_->moduleFunction(&check_, module_, "vfpassCheck"),
                 "cannot find kernel vfpassCheck");
}

std::string Gpu::name() const {
  std::array<char, 256> text{};
  driver_->check(driver_->deviceName(text.data(), text.size() - 1, device_),
                 "cannot read the GPU's name");
  return text.data();
}

std::string Gpu::pciAddress() const { return pciAddressOf(*driver_, device_); }

int Gpu::attribute(CudaAttribute attribute) const {
  int value = 0;
  driver_->check(driver_->deviceAttribute(&value, attribute, device_),
                 "cannot read GPU attribute " + std::to_string(static_cast<int>(attribute)));
  return value;
}

void Gpu::makeCurrent() const {
  driver_->check(driver_->contextSetCurrent(context_), "cannot enter the GPU's context");
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
  driver_->check(driver_->launch(function, columns, rows, 1, blockThreads, 1, 1, 0, nullptr,
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

void Gpu::wait() const { driver_->check(driver_->contextSynchronize(), "cannot wait for the GPU"); }

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
  driver_->check(driver_->flushRdmaWrites(currentContext, visibleToOwner),
                 "cannot flush other devices' writes to GPU memory");
}

std::shared_ptr<const Gpu> openGpu(const GpuChoice& choice) {
  hideOtherGpus(choice);
  return std::make_shared<const Gpu>(std::make_shared<const CudaDriver>(), choice);
}

GpuBuffer::GpuBuffer(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes)
    : gpu_(std::move(gpu)), bytes_((bytes + allocationUnit - 1) / allocationUnit * allocationUnit) {
  gpu_->makeCurrent();
  gpu_->driver().check(gpu_->driver().memoryAllocate(&address_, bytes_),
                       "cannot allocate " + std::to_string(bytes_) + " bytes of GPU memory");
}

GpuBuffer::~GpuBuffer() {
  try {
    gpu_->makeCurrent();
    gpu_->driver().memoryFree(address_);
  } catch (const Error&) {
    // The context is gone, and its memory with it.
  }
}

FileDescriptor GpuBuffer::exportDmaBuf() const {
  constexpr int dmaBufHandle = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
  const CudaDriver& driver = gpu_->driver();
  if (driver.memoryRangeHandle == nullptr) {
    throw Error("the GPU driver is older than R515 and has no DMA-BUF export",
                "install a newer driver, or load nvidia_peermem");
  }
  if (gpu_->attribute(CudaAttribute::dmaBufSupported) == 0) {
    throw Error("the GPU driver does not support export as DMA-BUF",
                "use the open kernel modules and Linux 5.12 or later, or load nvidia_peermem");
  }
  int descriptor = -1;
  driver.check(driver.memoryRangeHandle(&descriptor, address_, bytes_, dmaBufHandle, 0),
               "cannot export GPU memory as DMA-BUF");
  return FileDescriptor(descriptor);
}

}  // namespace vfpass::probe
