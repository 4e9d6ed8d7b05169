#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "rdma/partition_choice.hpp"

namespace vfpass::probe {

/// What one side of a queue pair needs to know about the other.
struct ConnectionInfo {
  std::uint32_t queuePair = 0;       ///< 24 bits
  std::uint32_t packetSequence = 0;  ///< 24 bits, of the side's first packet
  std::uint16_t localId = 0;         ///< LID, InfiniBand only
  std::array<std::uint8_t, 16> gid{};
  bool ethernet = false;      ///< link layer
  bool globalHeader = false;  ///< the port requires a global route header
  PartitionTable partitions;  ///< InfiniBand only; at most maxPartitions
  int mtu = 0;                ///< of the port, as enum ibv_mtu
  std::uint64_t address = 0;  ///< of the first slot that the peer writes or reads
  std::uint32_t key = 0;      ///< remote key for that access
};

nlohmann::json toJson(const ConnectionInfo& info);

/// Throws Error for anything that toJson does not write, because the peer is not trusted.
ConnectionInfo connectionFromJson(const nlohmann::json& json);

}  // namespace vfpass::probe
