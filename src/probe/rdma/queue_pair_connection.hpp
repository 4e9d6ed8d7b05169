#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rdma/rdma_core.hpp"

namespace vfpass {
class JsonReader;
}

namespace vfpass::probe {

/// A port's table of P_Keys by index. Bit 15 is full membership, the other bits name the partition;
/// an entry whose lower bits are 0 is unused.
using PartitionTable = std::vector<std::uint16_t>;

/// Longest table that two sides exchange; mlx5 has at most 128 entries.
constexpr std::size_t maxPartitions = 256;

/// An entry of one side's table.
struct PartitionEntry {
  std::uint16_t index = 0;
  std::uint16_t key = 0;
};

/// The entry to use with this peer. Both sides choose the same partition, whoever asks: a common
/// one in which at least one of them is a full member, because two limited members may not
/// communicate (InfiniBand Architecture, 10.9.3). Among several: the one with the lowest sum of
/// both indices, then with the lowest number. Throws Error that names the keys if there is none.
PartitionEntry choosePartition(const PartitionTable& own, const PartitionTable& peer);

/// Throws Error with the cause and its remedy unless data can be sent through this port. On
/// InfiniBand the cause is the port's state, a missing subnet manager or LID 0. `label` names the
/// port.
void requireUsablePort(const ibv_port_attr& attributes, const std::string& label);

/// Whether packets must have a global route header besides the LIDs. So it is on every RoCE port,
/// and on those InfiniBand ports, VFs among them, that share the LID of another port.
bool requiresGlobalHeader(const ibv_port_attr& attributes);

/// Remedy for a transfer that failed between two connected ports. `partition` is the P_Key in use,
/// on InfiniBand.
std::string pathRemedy(const ibv_port_attr& attributes, const std::string& partition);

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
ConnectionInfo connectionFromJson(const JsonReader& json);

/// This side's port, as far as a path begins there.
struct PathSource {
  ibv_port_attr attributes{};
  std::uint8_t port = 1;
  int gidIndex = 0;
};

/// The path to the peer's port: its LID on InfiniBand, and its GID where one of the ports requires
/// a global route header. Throws Error if the link layers differ or the peer lacks such a GID or a
/// LID.
ibv_ah_attr addressVector(const PathSource& source, const ConnectionInfo& peer);

}  // namespace vfpass::probe
