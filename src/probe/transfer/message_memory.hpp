#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transfer/pattern_formula.hpp"

namespace vfpass::probe {

/// Determines the contents of a message: every byte follows from the run's seed, the message's
/// number and the byte's offset in the message. Only the low 32 bits of the number count.
struct MessagePattern {
  std::uint64_t seed = 0;
  std::uint64_t message = 0;
};

/// How a message differs from its pattern.
struct Difference {
  std::uint64_t offset = 0;      ///< of the first wrong byte in the message
  std::uint64_t wrongBytes = 0;  ///< number of wrong bytes
};

/// Writes the pattern. Any size and any alignment.
void writePattern(std::span<std::byte> bytes, const MessagePattern& pattern);

/// Writes the complement of the pattern, which differs from it in every bit.
void writePoison(std::span<std::byte> bytes, const MessagePattern& pattern);

/// Compares every byte; nullopt if all are correct.
std::optional<Difference> comparePattern(std::span<const std::byte> bytes,
                                         const MessagePattern& pattern);

/// One byte of the pattern.
std::byte patternByte(const MessagePattern& pattern, std::uint64_t offset);

/// Layout of messages in a buffer of consecutive slots. Message m has slot m % slots; one pass
/// through all slots is a cycle, after which every byte is checked before the slots are used again.
struct Ring {
  std::uint64_t slots = 1;
  std::uint64_t messageBytes = 0;
  std::uint64_t stride = 0;  ///< bytes from one slot's start to the next
  std::uint64_t offset = 0;  ///< of slot 0 in the buffer; sets the messages' alignment

  [[nodiscard]] std::uint64_t slotOf(std::uint64_t message) const { return message % slots; }
  [[nodiscard]] std::uint64_t startOf(std::uint64_t slot) const { return offset + slot * stride; }
  /// Bytes that the ring needs in a buffer.
  [[nodiscard]] std::uint64_t bytes() const { return offset + slots * stride; }
};

/// Messages in consecutive slots: one cycle or a part of it.
struct MessageRange {
  std::uint64_t firstSlot = 0;
  std::uint64_t firstMessage = 0;
  std::uint64_t count = 0;
};

/// A ring of at most `limit` bytes, with at least one slot (even beyond the limit) and at most
/// `messages`. The stride puts each slot on its own cache lines.
Ring makeRing(std::uint64_t messageBytes, std::uint64_t messages, std::uint64_t limit,
              std::uint64_t offset);

/// The messages of cycle number `cycle`; cycle 0 is the warm-up.
MessageRange cycleRange(const Ring& ring, std::uint64_t cycle, std::uint64_t count);

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
