#include "gpu/gpu_memory.hpp"

#include <utility>

#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// As gpu/kernels.cu writes it.
struct SlotResult {
  std::uint64_t firstWrong = ~std::uint64_t{0};
  std::uint64_t wrongBytes = 0;
};

/// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous copies of this memory have completed when they
/// return. NVIDIA requires it for memory that other devices access.
constexpr int syncMemoryOperations = 6;

constexpr std::uint64_t allocationUnit = std::uint64_t{2} << 20U;

}  // namespace

GpuBuffer::GpuBuffer(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes)
    : gpu_(std::move(gpu)), bytes_((bytes + allocationUnit - 1) / allocationUnit * allocationUnit) {
  gpu_->makeCurrent();
  gpu_->driver().require(gpu_->driver().memoryAllocate(&address_, bytes_),
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
  driver.require(driver.memoryRangeHandle(&descriptor, address_, bytes_, dmaBufHandle, 0),
                 "cannot export GPU memory as DMA-BUF");
  return FileDescriptor(descriptor);
}

GpuMemory::GpuMemory(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes, std::uint64_t slots)
    : gpu_(gpu), buffer_(gpu, bytes), results_(gpu, slots * sizeof(SlotResult)) {
  const int yes = 1;
  const CudaDriver& driver = gpu_->driver();
  driver.require(driver.pointerSetAttribute(&yes, syncMemoryOperations, buffer_.address()),
                 "cannot make copies of GPU memory synchronous");
}

GpuMessages GpuMemory::messages(const Ring& ring, const MessageRange& range) const {
  return {buffer_.address() + ring.startOf(range.firstSlot), ring.stride, ring.messageBytes,
          range.count, range.firstMessage};
}

void GpuMemory::fill(const Ring& ring, std::uint64_t seed, const MessageRange& range) {
  gpu_->makeCurrent();
  gpu_->startFill(messages(ring, range), seed, 0);
  gpu_->wait();
}

void GpuMemory::poison(const Ring& ring, std::uint64_t seed, const MessageRange& range) {
  gpu_->makeCurrent();
  gpu_->startFill(messages(ring, range), seed, poisonBits);
  gpu_->wait();
}

std::vector<SlotDifference> GpuMemory::compare(const Ring& ring, std::uint64_t seed,
                                               const MessageRange& range) {
  gpu_->makeCurrent();
  gpu_->flushForeignWrites();
  const CudaDriver& driver = gpu_->driver();
  std::vector<SlotResult> results(range.count);
  const std::size_t resultBytes = results.size() * sizeof(SlotResult);
  driver.require(driver.memoryCopyIn(results_.address(), results.data(), resultBytes),
                 "cannot prepare the GPU's check");
  gpu_->startCheck(messages(ring, range), seed, results_.address());
  gpu_->wait();
  driver.require(driver.memoryCopyOut(results.data(), results_.address(), resultBytes),
                 "cannot read the result of the GPU's check");
  std::vector<SlotDifference> wrong;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    if (results[i].wrongBytes != 0) {
      wrong.push_back({range.firstSlot + i, {results[i].firstWrong, results[i].wrongBytes}});
    }
  }
  return wrong;
}

void GpuMemory::read(std::uint64_t offset, std::span<std::byte> into) {
  gpu_->makeCurrent();
  gpu_->driver().require(
      gpu_->driver().memoryCopyOut(into.data(), buffer_.address() + offset, into.size()),
      "cannot copy from GPU memory");
}

void GpuMemory::write(std::uint64_t offset, std::span<const std::byte> from) {
  gpu_->makeCurrent();
  gpu_->driver().require(
      gpu_->driver().memoryCopyIn(buffer_.address() + offset, from.data(), from.size()),
      "cannot copy to GPU memory");
}

}  // namespace vfpass::probe
