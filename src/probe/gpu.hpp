#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda_driver.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// Where messages lie in GPU memory, for the kernels.
struct GpuMessages {
  CudaAddress base = 0;           ///< of the first message; any alignment
  unsigned long long stride = 0;  ///< from one message to the next, in bytes
  unsigned long long size = 0;    ///< of each message, in bytes
  unsigned long long count = 1;
  unsigned long long firstMessage = 0;
};

/// One GPU with its primary context and our kernels in it.
class Gpu {
 public:
  /// The `index`th GPU as CUDA counts. Throws Error when there is none or the kernels do not load.
  Gpu(std::shared_ptr<const CudaDriver> driver, int index);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  [[nodiscard]] const CudaDriver& driver() const { return *driver_; }
  [[nodiscard]] std::string name() const;
  /// PCI address in the guest, `0000:05:00.0`, in lower case.
  [[nodiscard]] std::string pciAddress() const;
  [[nodiscard]] int attribute(CudaAttribute attribute) const;

  /// Makes this GPU's context the calling thread's. Every thread that uses the GPU does so first.
  void makeCurrent() const;

  /// Starts the kernels; they run after one another. `turned`: 0 for the pattern, all ones for
  /// poison.
  void startFill(const GpuMessages& messages, std::uint64_t seed, std::uint64_t turned) const;
  /// `results` is GPU memory: two words a message, all ones and 0 before. See gpu/kernels.cu.
  void startCheck(const GpuMessages& messages, std::uint64_t seed, CudaAddress results) const;
  void wait() const;

  /// Makes what other devices wrote into this GPU's memory visible to its kernels, on the GPUs that
  /// do not do so by themselves. Throws Error when such a GPU cannot be asked to.
  void seeForeignWrites() const;

 private:
  void launch(CudaFunction function, const GpuMessages& messages, std::uint64_t seed,
              unsigned long long last) const;
  void loadKernels();

  std::shared_ptr<const CudaDriver> driver_;
  CudaDevice device_ = 0;
  CudaContext context_ = nullptr;
  CudaModule module_ = nullptr;
  CudaFunction fill_ = nullptr;
  CudaFunction check_ = nullptr;
};

/// GPU memory that is freed with its owner.
class GpuBuffer {
 public:
  /// At least `bytes`, in whole units of 2 MiB, so that a DMA-BUF of it holds nothing else.
  GpuBuffer(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes);
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  ~GpuBuffer();

  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] CudaAddress address() const { return address_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// The whole buffer as a DMA-BUF. Throws Error with the reason when driver, kernel or GPU cannot.
  [[nodiscard]] FileDescriptor exportDmaBuf() const;

 private:
  std::shared_ptr<const Gpu> gpu_;
  std::uint64_t bytes_ = 0;
  CudaAddress address_ = 0;
};

}  // namespace vfpass::probe
