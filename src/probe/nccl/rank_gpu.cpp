#include <utility>

#include "nccl/nccl_ranks.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

// CU_STREAM_NON_BLOCKING: as nccl-tests, so that the default stream's work does not wait for it.
constexpr unsigned nonBlockingStream = 1;
constexpr CudaStatus notReady = 600;  // CUDA_ERROR_NOT_READY
constexpr std::uint64_t exchangeBytes = 4096;

void requireStreams(const CudaDriver& driver) {
  if (driver.streamCreate == nullptr || driver.streamDestroy == nullptr ||
      driver.streamQuery == nullptr || driver.memoryInfo == nullptr) {
    throw Error("libcuda has no streams", "install NVIDIA's GPU driver in the guest");
  }
}

}  // namespace

RankGpu::RankGpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice)
    : driver_(std::move(driver)), device_(findGpu(*driver_, choice)) {
  requireStreams(*driver_);
  driver_->check(driver_->primaryContextRetain(&context_, device_),
                 "cannot create a context on " + describe(choice));
  try {
    makeCurrent();
    driver_->check(driver_->streamCreate(&stream_, nonBlockingStream), "cannot create a stream");
    exchange_ = newMemory(exchangeBytes);
  } catch (...) {
    release();
    throw;
  }
}

RankGpu::~RankGpu() { release(); }

void RankGpu::release() {
  driver_->contextSetCurrent(context_);
  for (const CudaAddress memory : {source_, destination_, exchange_}) {
    if (memory != 0) {
      driver_->memoryFree(memory);
    }
  }
  if (stream_ != nullptr) {
    driver_->streamDestroy(stream_);
  }
  driver_->primaryContextRelease(device_);
}

void RankGpu::makeCurrent() const {
  driver_->check(driver_->contextSetCurrent(context_), "cannot enter the GPU's context");
}

std::uint64_t RankGpu::freeBytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  makeCurrent();
  driver_->check(driver_->memoryInfo(&free, &total), "cannot read the GPU's free memory");
  return free;
}

CudaAddress RankGpu::newMemory(std::uint64_t bytes) const {
  CudaAddress memory = 0;
  driver_->check(driver_->memoryAllocate(&memory, bytes),
                 "cannot allocate " + std::to_string(bytes) + " bytes of GPU memory");
  return memory;
}

void RankGpu::allocate(std::uint64_t bytes) {
  makeCurrent();
  source_ = newMemory(bytes);
  destination_ = newMemory(bytes);
}

void RankGpu::poison(std::uint64_t bytes) const {
  constexpr unsigned char noNumber = 0xff;
  makeCurrent();
  driver_->check(driver_->memorySet8(destination_, noNumber, bytes), "cannot set GPU memory");
  driver_->check(driver_->contextSynchronize(), "cannot wait for the GPU");
}

bool RankGpu::idle() const {
  const CudaStatus status = driver_->streamQuery(stream_);
  if (status == notReady) {
    return false;
  }
  driver_->check(status, "the GPU failed during a collective operation");
  return true;
}

void RankGpu::copyIn(CudaAddress to, const void* from, std::uint64_t bytes) const {
  makeCurrent();
  driver_->check(driver_->memoryCopyIn(to, from, bytes), "cannot copy to GPU memory");
  // The copy returns once pageable memory was read; streams that do not block do not wait for it.
  driver_->check(driver_->contextSynchronize(), "cannot wait for the GPU");
}

void RankGpu::copyOut(void* to, CudaAddress from, std::uint64_t bytes) const {
  makeCurrent();
  driver_->check(driver_->memoryCopyOut(to, from, bytes), "cannot copy from GPU memory");
}

}  // namespace vfpass::probe
