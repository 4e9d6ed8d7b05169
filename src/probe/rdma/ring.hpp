#pragma once

#include <cstdint>

namespace vfpass::probe {

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

}  // namespace vfpass::probe
