#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace vfpass::probe {

/// What one side of a queue pair has to know of the other.
struct ConnectionInfo {
  std::uint32_t queuePair = 0;       ///< 24 bits
  std::uint32_t packetSequence = 0;  ///< 24 bits, of the first packet that the side sends
  std::uint16_t localId = 0;         ///< LID, InfiniBand only
  std::array<std::uint8_t, 16> gid{};
  bool ethernet = false;      ///< link layer
  int mtu = 0;                ///< the port's, as enum ibv_mtu has it
  std::uint64_t address = 0;  ///< where the first slot is that the peer writes to or reads from
  std::uint32_t key = 0;      ///< the remote key that allows it
};

nlohmann::json toJson(const ConnectionInfo& info);

/// Throws Error for anything that toJson does not write: the peer is not trusted.
ConnectionInfo connectionFromJson(const nlohmann::json& json);

}  // namespace vfpass::probe
