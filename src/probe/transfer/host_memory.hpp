#pragma once

#include "transfer/memory.hpp"

namespace vfpass::probe {

/// Anonymous pages of this process, checked with vector code.
class HostMemory final : public Memory {
 public:
  /// Throws Error when there is not enough memory.
  explicit HostMemory(std::uint64_t bytes);
  ~HostMemory() override;

  [[nodiscard]] std::uint64_t address() const override;
  [[nodiscard]] std::uint64_t bytes() const override { return pages_.size(); }
  void fill(const Ring& ring, std::uint64_t seed, const MessageRange& range) override;
  void poison(const Ring& ring, std::uint64_t seed, const MessageRange& range) override;
  std::vector<SlotDifference> compare(const Ring& ring, std::uint64_t seed,
                                      const MessageRange& range) override;
  void read(std::uint64_t offset, std::span<std::byte> into) override;
  void write(std::uint64_t offset, std::span<const std::byte> from) override;

 private:
  [[nodiscard]] std::span<std::byte> slot(const Ring& ring, std::uint64_t slot) const;

  std::span<std::byte> pages_;
};

}  // namespace vfpass::probe
