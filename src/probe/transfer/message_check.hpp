#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transfer/message_memory.hpp"

namespace vfpass::probe {

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
