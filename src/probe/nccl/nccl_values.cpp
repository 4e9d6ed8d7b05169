#include "nccl/nccl_values.hpp"

#include <cstddef>

namespace vfpass::probe {
namespace {

/// The finalizer of MurmurHash3: each bit of the result depends on every bit of `word`.
std::uint32_t mixed(std::uint32_t word) {
  word ^= word >> 16U;
  word *= 0x85ebca6bU;
  word ^= word >> 13U;
  word *= 0xc2b2ae35U;
  return word ^ (word >> 16U);
}

}  // namespace

float valueAt(std::uint64_t index, std::uint32_t seed) {
  const auto word = static_cast<std::uint32_t>(index) ^
                    (static_cast<std::uint32_t>(index >> 32U) * 0x9e3779b9U) ^ seed;
  return static_cast<float>(static_cast<std::int32_t>(1U + (mixed(word) & 0xfffU)));
}

void fillValues(std::span<float> values, std::uint64_t index, std::uint32_t seed, float factor) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = valueAt(index + i, seed) * factor;
  }
}

void WrongValues::add(const WrongValues& other) {
  if (count == 0) {
    *this = other;
  } else {
    count += other.count;
  }
}

WrongValues compareValues(std::span<const float> values, std::uint64_t index, std::uint32_t seed,
                          float factor) {
  // Counted first, because this loop is vectorized; a value that is not a number is unequal, too.
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    count += values[i] != valueAt(index + i, seed) * factor ? 1U : 0U;
  }
  WrongValues wrong;
  for (std::size_t i = 0; count != 0 && i < values.size(); ++i) {
    const float expected = valueAt(index + i, seed) * factor;
    if (values[i] != expected) {
      return {count, index + i, expected, values[i]};
    }
  }
  return wrong;
}

}  // namespace vfpass::probe
