#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rdma/ring.hpp"
#include "transfer/pattern.hpp"

namespace vfpass::probe {

/// A slot with wrong contents.
struct SlotDifference {
  std::uint64_t slot = 0;
  Difference difference;
};

/// The memory that holds a run's messages. Only its owner, CPU or GPU, fills and checks it, so that
/// a check sees what the owner's programs would see.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  /// The address that RDMA uses.
  [[nodiscard]] virtual std::uint64_t address() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;

  virtual void fill(const Ring& ring, std::uint64_t seed, const MessageRange& range) = 0;
  virtual void poison(const Ring& ring, std::uint64_t seed, const MessageRange& range) = 0;
  /// The slots of the range in which any byte is wrong.
  virtual std::vector<SlotDifference> compare(const Ring& ring, std::uint64_t seed,
                                              const MessageRange& range) = 0;

  /// Copies bytes out or in, for diagnosis and for injected faults.
  virtual void read(std::uint64_t offset, std::span<std::byte> into) = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> from) = 0;
};

}  // namespace vfpass::probe
