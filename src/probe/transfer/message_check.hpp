#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/message_memory.hpp"

namespace vfpass::probe {

// Damage to messages: injected on purpose, and found.

/// Faults that are injected on purpose, to show that the checks find them.
enum class Fault { none, flip, lost, stale, misplaced, truncate, duplicate };

/// A fault and the message that it affects.
struct Injection {
  Fault fault = Fault::none;
  std::uint64_t message = 0;
};

/// One transfer to post: from a slot of the source to a slot of the destination.
struct Transfer {
  std::uint64_t sourceSlot = 0;
  std::uint64_t destinationSlot = 0;
  std::uint64_t bytes = 0;
};

/// nullopt if `name` is not the name of a fault.
std::optional<Fault> parseFault(std::string_view name);
std::string faultName(Fault fault);

/// The transfers to post for one message, including the faults that the initiator injects. A
/// misplaced or duplicated message goes to the slot before its own (for a cycle's first slot, the
/// one after it) and overwrites the message there; RC preserves the order of writes and of reads.
std::vector<Transfer> transfersFor(const Ring& ring, std::uint64_t message,
                                   const Injection& injection);

/// Inverts one bit of the byte at this offset.
void flipBit(Memory& memory, std::uint64_t offset, unsigned bit);

/// Injects the faults of the source's owner after it has filled `range`: flips one bit, or writes
/// what the slot held one cycle before.
void corruptSource(Memory& memory, const Ring& ring, std::uint64_t seed, const MessageRange& range,
                   const Injection& injection);

/// Kinds of damage to a slot. `corrupted` is anything that fits no other kind.
enum class Damage { flipped, lost, truncated, stale, misplaced, duplicate, corrupted };

/// One wrong message as its memory's owner sees it.
struct Corruption {
  Damage damage = Damage::corrupted;
  std::uint64_t message = 0;
  std::uint64_t slot = 0;
  std::uint64_t offset = 0;  ///< of the first wrong byte in the message
  std::uint64_t wrongBytes = 0;
  std::uint64_t foundMessage = 0;  ///< the message found instead, if stale, misplaced or duplicate
  std::uint8_t expected = 0;       ///< the byte at `offset`
  std::uint8_t seen = 0;
};

/// Result of a check. Counts everything and describes the first corruptions.
struct CheckResult {
  std::uint64_t messages = 0;  ///< checked
  std::uint64_t bytes = 0;     ///< checked, each of them
  std::uint64_t wrongMessages = 0;
  std::uint64_t wrongBytes = 0;
  std::vector<Corruption> corruptions;  ///< at most `maxDescribed`

  static constexpr std::size_t maxDescribed = 8;

  /// Adds the result of another cycle.
  void add(const CheckResult& other);
};

std::string damageName(Damage damage);

/// Compares every byte of the range and classifies the damage.
CheckResult checkMessages(Memory& memory, const Ring& ring, std::uint64_t seed,
                          const MessageRange& range);

}  // namespace vfpass::probe
