#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pattern_formula.hpp"

namespace vfpass::probe {

/// What one message of a run holds: every byte follows from the run's seed, the message's number
/// and the byte's offset in the message. Only the low 32 bits of the number count.
struct MessagePattern {
  std::uint64_t seed = 0;
  std::uint64_t message = 0;
};

/// Where a message is not what it should be.
struct Difference {
  std::uint64_t offset = 0;      ///< of the first wrong byte, from the message's first
  std::uint64_t wrongBytes = 0;  ///< how many there are
};

/// Writes the pattern. Any size and any alignment.
void writePattern(std::span<std::byte> bytes, const MessagePattern& pattern);

/// Writes what differs from the pattern in every bit of every byte.
void writePoison(std::span<std::byte> bytes, const MessagePattern& pattern);

/// Compares every byte; nullopt when all are right.
std::optional<Difference> comparePattern(std::span<const std::byte> bytes,
                                         const MessagePattern& pattern);

/// One byte of the pattern.
std::byte patternByte(const MessagePattern& pattern, std::uint64_t offset);

}  // namespace vfpass::probe
