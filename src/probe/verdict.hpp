#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory.hpp"

namespace vfpass::probe {

/// What a wrong slot looks like. `corrupted` is what fits nothing else.
enum class Damage { flipped, lost, truncated, stale, misplaced, duplicate, corrupted };

/// One wrong message as its memory's owner sees it.
struct Corruption {
  Damage damage = Damage::corrupted;
  std::uint64_t message = 0;
  std::uint64_t slot = 0;
  std::uint64_t offset = 0;  ///< first wrong byte, from the message's first
  std::uint64_t wrongBytes = 0;
  std::uint64_t foundMessage = 0;  ///< whose bytes lie there: stale, misplaced, duplicate
  std::uint8_t expected = 0;       ///< the byte at `offset`
  std::uint8_t seen = 0;
};

/// What checking found. Everything is counted; the first ones are described.
struct CheckResult {
  std::uint64_t messages = 0;  ///< checked
  std::uint64_t bytes = 0;     ///< checked, each of them
  std::uint64_t wrongMessages = 0;
  std::uint64_t wrongBytes = 0;
  std::vector<Corruption> corruptions;  ///< at most `mostDescribed`

  static constexpr std::size_t mostDescribed = 8;

  /// Takes another cycle's result in.
  void add(const CheckResult& other);
};

std::string damageName(Damage damage);

/// Compares every byte of the range, and says of what is wrong what it looks like.
CheckResult checkMessages(Memory& memory, const Ring& ring, std::uint64_t seed,
                          const MessageRange& range);

}  // namespace vfpass::probe
