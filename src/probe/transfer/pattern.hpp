#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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

}  // namespace vfpass::probe
