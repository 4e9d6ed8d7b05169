#pragma once

#include <cstdint>
#include <memory>

#include "gpu/cuda_driver.hpp"
#include "transfer/message_memory.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

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

/// Memory of a GPU, filled and checked by the GPU itself.
class GpuMemory final : public Memory {
 public:
  /// For at most `slots` slots. Throws Error if the memory cannot be allocated.
  GpuMemory(std::shared_ptr<const Gpu> gpu, std::uint64_t bytes, std::uint64_t slots);

  [[nodiscard]] const GpuBuffer& buffer() const { return buffer_; }
  [[nodiscard]] std::uint64_t address() const override { return buffer_.address(); }
  [[nodiscard]] std::uint64_t bytes() const override { return buffer_.bytes(); }
  void fill(const Ring& ring, std::uint64_t seed, const MessageRange& range) override;
  void poison(const Ring& ring, std::uint64_t seed, const MessageRange& range) override;
  std::vector<SlotDifference> compare(const Ring& ring, std::uint64_t seed,
                                      const MessageRange& range) override;
  void read(std::uint64_t offset, std::span<std::byte> into) override;
  void write(std::uint64_t offset, std::span<const std::byte> from) override;

 private:
  [[nodiscard]] GpuMessages messages(const Ring& ring, const MessageRange& range) const;

  std::shared_ptr<const Gpu> gpu_;
  GpuBuffer buffer_;
  GpuBuffer results_;  ///< two words for each slot
};

}  // namespace vfpass::probe
