#include "rdma/ring.hpp"

#include <algorithm>

namespace vfpass::probe {

Ring makeRing(std::uint64_t messageBytes, std::uint64_t messages, std::uint64_t limit,
              std::uint64_t offset) {
  constexpr std::uint64_t cacheLine = 64;
  Ring ring;
  ring.messageBytes = messageBytes;
  ring.offset = offset;
  ring.stride = (messageBytes + cacheLine - 1) / cacheLine * cacheLine;
  const std::uint64_t fitting = std::max<std::uint64_t>(1, limit / ring.stride);
  ring.slots = std::clamp<std::uint64_t>(messages, 1, fitting);
  return ring;
}

}  // namespace vfpass::probe
