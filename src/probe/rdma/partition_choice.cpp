#include "rdma/partition_choice.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr std::uint16_t fullMember = 0x8000;
constexpr std::uint16_t numberMask = 0x7fff;

bool isFull(const PartitionEntry& entry) { return (entry.key & fullMember) != 0; }

/// One entry for each partition. A subnet manager may list one partition with both memberships
/// (`both` in opensm's partitions.conf); the full one reaches every member.
std::map<std::uint16_t, PartitionEntry> membershipsIn(const PartitionTable& table) {
  std::map<std::uint16_t, PartitionEntry> memberships;
  for (std::size_t index = 0; index < table.size(); ++index) {
    const PartitionEntry entry{static_cast<std::uint16_t>(index), table[index]};
    const auto number = static_cast<std::uint16_t>(entry.key & numberMask);
    if (number == 0) {
      continue;
    }
    const auto [known, added] = memberships.emplace(number, entry);
    if (!added && isFull(entry) && !isFull(known->second)) {
      known->second = entry;
    }
  }
  return memberships;
}

std::string listOf(const PartitionTable& table) {
  constexpr std::size_t most = 8;
  std::vector<std::string> keys;
  for (const std::uint16_t key : table) {
    if ((key & numberMask) != 0 && keys.size() <= most) {
      keys.push_back(keys.size() == most ? "..." : partitionText(key));
    }
  }
  return keys.empty() ? "none" : join(keys, ", ");
}

}  // namespace

PartitionEntry choosePartition(const PartitionTable& own, const PartitionTable& peer) {
  const auto ours = membershipsIn(own);
  const auto theirs = membershipsIn(peer);
  std::optional<std::tuple<unsigned, std::uint16_t>> best;
  bool bothLimited = false;
  for (const auto& [number, entry] : ours) {
    const auto other = theirs.find(number);
    if (other == theirs.end()) {
      continue;
    }
    if (!isFull(entry) && !isFull(other->second)) {
      bothLimited = true;
      continue;
    }
    const std::tuple rank{unsigned{entry.index} + other->second.index, number};
    best = best ? std::min(*best, rank) : rank;
  }
  if (!best) {
    throw Error(std::string(bothLimited ? "both sides are limited members of their common partition"
                                        : "the two sides have no common partition") +
                    ": P_Keys " + listOf(own) + " on this side, " + listOf(peer) + " on the other",
                bothLimited
                    ? "make one of the two port GUIDs a full member in the subnet manager's "
                      "partitions.conf, then restart it"
                    : "add both port GUIDs to one partition in the subnet manager's "
                      "partitions.conf, then restart it");
  }
  return ours.at(std::get<1>(*best));
}

std::string partitionText(std::uint16_t key) {
  std::array<char, sizeof "0xffff"> text{};
  std::snprintf(text.data(), text.size(), "0x%04x", static_cast<unsigned>(key));
  return text.data();
}

}  // namespace vfpass::probe
