#pragma once

#include "vfpass/seal_key.hpp"

namespace vfpass::fake {

/// The seal key of the host under test.
inline const SealKey& sealKey() {
  static const SealKey key{std::vector<std::uint8_t>(32, 0x5a), "0123456789abcdef0123456789abcdef"};
  return key;
}

}  // namespace vfpass::fake
