#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

/// `0x8001`.
std::string partitionText(std::uint16_t key);

}  // namespace vfpass::probe
