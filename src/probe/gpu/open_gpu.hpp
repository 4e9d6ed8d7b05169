#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/cuda_driver.hpp"
#include "gpu/gpu_choice.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// Layout of messages in GPU memory, for the kernels.
struct GpuMessages {
  CudaAddress base = 0;           ///< of the first message; any alignment
  unsigned long long stride = 0;  ///< from one message to the next, in bytes
  unsigned long long size = 0;    ///< of each message, in bytes
  unsigned long long count = 1;
  unsigned long long firstMessage = 0;
};

/// One GPU with its primary context and the kernels loaded into it.
class Gpu {
 public:
  /// Throws Error if there is no such GPU or the kernels do not load.
  Gpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  [[nodiscard]] const CudaDriver& driver() const { return *driver_; }
  [[nodiscard]] std::string name() const;
  /// PCI address in the guest, `0000:05:00.0`, in lower case.
  [[nodiscard]] std::string pciAddress() const;
  [[nodiscard]] int attribute(CudaAttribute attribute) const;

  /// Makes this GPU's context current in the calling thread. Every thread must do so before it uses
  /// the GPU.
  void makeCurrent() const;

  /// Starts the kernels, which run one after another. `inversion`: 0 for the pattern, all ones for
  /// poison.
  void startFill(const GpuMessages& messages, std::uint64_t seed, std::uint64_t inversion) const;
  /// `results` is GPU memory: two words for each message, initially all ones and 0. See
  /// gpu/kernels.cu.
  void startCheck(const GpuMessages& messages, std::uint64_t seed, CudaAddress results) const;
  void wait() const;

  /// Makes other devices' writes to this GPU's memory visible to its kernels, on GPUs that need it.
  /// Throws Error if that fails.
  void flushForeignWrites() const;

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

/// Loads CUDA and opens this GPU; no other GPU of the guest is initialized if the choice is an
/// address. Throws Error.
std::shared_ptr<const Gpu> openGpu(const GpuChoice& choice);

/// GPU memory that is freed with its owner.
class GpuBuffer {
 public:
  /// At least `bytes`, in units of 2 MiB, so that its DMA-BUF contains nothing else.
  GpuBuffer(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes);
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  ~GpuBuffer();

  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] CudaAddress address() const { return address_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Exports the whole buffer as a DMA-BUF. Throws Error with the reason if driver, kernel or GPU
  /// do not support it.
  [[nodiscard]] FileDescriptor exportDmaBuf() const;

 private:
  std::shared_ptr<const Gpu> gpu_;
  std::uint64_t bytes_ = 0;
  CudaAddress address_ = 0;
};

}  // namespace vfpass::probe
