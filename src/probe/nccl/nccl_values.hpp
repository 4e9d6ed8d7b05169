#pragma once

#include <cstdint>
#include <span>

namespace vfpass::probe {

/// The most ranks for which every sum of values is a whole number below 2^24, so that float sums
/// are exact in every order.
constexpr int mostNcclRanks = 90;

/// The value at `index` that all ranks multiply with their factor: a whole number from 1 to 4096,
/// from a hash of index and seed, so that neighbouring and equally distant values differ.
float valueAt(std::uint64_t index, std::uint32_t seed);

/// Writes the values from `index` on, times `factor`. A rank's factor is its number plus 1, so that
/// a contribution that is missing or counted twice changes every sum.
void fillValues(std::span<float> values, std::uint64_t index, std::uint32_t seed, float factor);

/// Values that differ from what they should be.
struct WrongValues {
  std::uint64_t count = 0;
  std::uint64_t first = 0;  ///< index of the first one
  float expected = 0;       ///< its right value
  float seen = 0;

  void add(const WrongValues& other);
};

/// Compares with what fillValues() would have written, exactly.
WrongValues compareValues(std::span<const float> values, std::uint64_t index, std::uint32_t seed,
                          float factor);

}  // namespace vfpass::probe
