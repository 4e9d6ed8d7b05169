#include "gpu.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels_ptx.hpp"
#include "pattern_formula.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

// As gpu/kernels.cu has them.
constexpr unsigned blockThreads = 256;
constexpr unsigned long long tileBytes = 16ULL * blockThreads * 8;

constexpr std::uint64_t allocationUnit = std::uint64_t{2} << 20U;

}  // namespace

Gpu::Gpu(std::shared_ptr<const CudaDriver> driver, int index) : driver_(std::move(driver)) {
  const std::string label = "GPU " + std::to_string(index);
  driver_->check(driver_->deviceGet(&device_, index), "opening " + label);
  driver_->check(driver_->primaryContextRetain(&context_, device_), "making a context on " + label);
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
  // The driver takes the size in the place of a pointer.
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const CudaStatus status =
      driver_->moduleLoad(&module_, kernelsPtx, options.size(), options.data(), values.data());
  if (status != 0) {
    throw Error("the GPU driver does not take our kernels: " + driver_->words(status) + " " +
                    printable(trim(log.data())),
                "drivers from R470 on are known to; install a newer one");
  }
  driver_->check(driver_->moduleFunction(&fill_, module_, "vfpassFill"),
                 "finding kernel vfpassFill");
  driver_->check(driver_->moduleFunction(&check_, module_, "vfpassCheck"),
                 "finding kernel vfpassCheck");
}

std::string Gpu::name() const {
  std::array<char, 256> text{};
  driver_->check(driver_->deviceName(text.data(), text.size() - 1, device_),
                 "reading the GPU's name");
  return text.data();
}

std::string Gpu::pciAddress() const {
  std::array<char, 32> text{};
  driver_->check(driver_->devicePciBusId(text.data(), text.size() - 1, device_),
                 "reading the GPU's PCI address");
  return toLower(text.data());
}

int Gpu::attribute(CudaAttribute attribute) const {
  int value = 0;
  driver_->check(driver_->deviceAttribute(&value, attribute, device_),
                 "reading GPU attribute " + std::to_string(static_cast<int>(attribute)));
  return value;
}

void Gpu::makeCurrent() const {
  driver_->check(driver_->contextSetCurrent(context_), "entering the GPU's context");
}

void Gpu::launch(CudaFunction function, const GpuMessages& messages, std::uint64_t seed,
                 unsigned long long last) const {
  constexpr unsigned long long mostColumns = 0x7fffffff;  // grid limits of every GPU
  constexpr unsigned long long mostRows = 65535;
  GpuMessages place = messages;
  unsigned long long key = patternKey(seed);
  std::array<void*, 7> arguments{&place.base,         &place.stride, &place.size, &place.count,
                                 &place.firstMessage, &key,          &last};
  // A tile for each block: the GPU's own scheduler spreads them best.
  const auto columns = static_cast<unsigned>(
      std::clamp((place.size + tileBytes - 1) / tileBytes, 1ULL, mostColumns));
  const auto rows = static_cast<unsigned>(std::clamp(place.count, 1ULL, mostRows));
  driver_->check(driver_->launch(function, columns, rows, 1, blockThreads, 1, 1, 0, nullptr,
                                 arguments.data(), nullptr),
                 "starting a kernel");
}

void Gpu::startFill(const GpuMessages& messages, std::uint64_t seed, std::uint64_t turned) const {
  launch(fill_, messages, seed, turned);
}

void Gpu::startCheck(const GpuMessages& messages, std::uint64_t seed, CudaAddress results) const {
  launch(check_, messages, seed, results);
}

void Gpu::wait() const { driver_->check(driver_->contextSynchronize(), "waiting for the GPU"); }

void Gpu::seeForeignWrites() const {
  constexpr int visibleToOwner = 100;  // CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER, and the scope
  constexpr int currentContext = 0;    // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX
  constexpr int hostCanFlush = 1;      // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST
  const bool ordered = attribute(CudaAttribute::gpuDirectRdmaWritesOrdering) >= visibleToOwner;
  const bool flushable = driver_->flushRdmaWrites != nullptr &&
                         (attribute(CudaAttribute::gpuDirectRdmaFlushOptions) & hostCanFlush) != 0;
  // Without either, it rests on a kernel seeing what arrived before it was started.
  if (ordered || !flushable) {
    return;
  }
  driver_->check(driver_->flushRdmaWrites(currentContext, visibleToOwner),
                 "flushing what other devices wrote into the GPU's memory");
}

GpuBuffer::GpuBuffer(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes)
    : gpu_(std::move(gpu)), bytes_((bytes + allocationUnit - 1) / allocationUnit * allocationUnit) {
  gpu_->makeCurrent();
  gpu_->driver().check(gpu_->driver().memoryAllocate(&address_, bytes_),
                       "allocating " + std::to_string(bytes_) + " bytes of GPU memory");
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
    throw Error("the GPU driver says that it cannot export memory as DMA-BUF",
                "it needs the open kernel modules and Linux 5.12, or load nvidia_peermem");
  }
  int descriptor = -1;
  driver.check(driver.memoryRangeHandle(&descriptor, address_, bytes_, dmaBufHandle, 0),
               "exporting GPU memory as DMA-BUF");
  return FileDescriptor(descriptor);
}

}  // namespace vfpass::probe
