#include "rdma/queue_pair_connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

// virt_enabled lets opensm configure the ports of VFs.
constexpr const char* startManager =
    "start a subnet manager (opensm) on the fabric; for a VF, set virt_enabled 2 in its "
    "opensm.conf";

bool isEthernet(const ibv_port_attr& attributes) {
  return attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
}

std::string lids(const ibv_port_attr& attributes) {
  return "LID " + std::to_string(attributes.lid) + ", subnet manager's LID " +
         std::to_string(attributes.sm_lid);
}

std::string stateName(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    default:
      return std::to_string(static_cast<int>(state));
  }
}

// The subnet manager moves a port with a link from INIT through ARMED to ACTIVE.
void requireActiveInfiniband(const ibv_port_attr& attributes, const std::string& label) {
  const std::string where =
      label + " is not active: state " + stateName(attributes.state) + ", " + lids(attributes);
  if (attributes.state == IBV_PORT_INIT || attributes.state == IBV_PORT_ARMED) {
    throw Error(where + ": no subnet manager has activated it", startManager);
  }
  throw Error(where, std::string("check the cable and the switch; for a VF, set its link state on "
                                 "the host (ip link set PF vf N state auto) and ") +
                         startManager);
}

constexpr std::uint32_t largest24Bits = 0xffffff;
constexpr int largestMtu = 5;  // IBV_MTU_4096

PartitionTable partitionsFromJson(const JsonReader& keys) {
  PartitionTable table;
  for (const JsonReader& key : keys.requireList(maxPartitions)) {
    table.push_back(key.requireNumber<std::uint16_t>());
  }
  return table;
}

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
      keys.push_back(keys.size() == most ? "..." : hexadecimal(key));
    }
  }
  return keys.empty() ? "none" : join(keys, ", ");
}

}  // namespace

void requireUsablePort(const ibv_port_attr& attributes, const std::string& label) {
  const bool active = attributes.state == IBV_PORT_ACTIVE;
  if (isEthernet(attributes)) {
    if (!active) {
      throw Error(label + " is not active: state " + stateName(attributes.state),
                  "bring the link up with ip link set NETDEV up; check the cable and the switch");
    }
    return;
  }
  if (!active) {
    requireActiveInfiniband(attributes, label);
  }
  // Every InfiniBand packet has a destination LID, also one with a global route header, and 0 is
  // reserved. SM LID 0 alone is not an error: a port can be configured without a subnet manager.
  if (attributes.lid == 0) {
    throw Error(label + " has LID 0: " +
                    (attributes.sm_lid == 0 ? "no subnet manager has configured it"
                                            : "the subnet manager has assigned none"),
                startManager);
  }
}

bool requiresGlobalHeader(const ibv_port_attr& attributes) {
  return isEthernet(attributes) || (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
}

std::string pathRemedy(const ibv_port_attr& attributes, const std::string& partition) {
  if (isEthernet(attributes)) {
    return "check GID index, MTU, VLAN and the path between the two ports";
  }
  return "check that the subnet manager runs (" + lids(attributes) +
         ") and that it has configured partition " + partition +
         " on both ports and the switches between them";
}

nlohmann::json toJson(const ConnectionInfo& info) {
  return {{"queue_pair", info.queuePair}, {"packet_sequence", info.packetSequence},
          {"lid", info.localId},          {"gid", hexBytes(info.gid, "")},
          {"ethernet", info.ethernet},    {"grh_required", info.globalHeader},
          {"p_keys", info.partitions},    {"mtu", static_cast<unsigned>(info.mtu)},
          {"address", info.address},      {"key", info.key}};
}

ConnectionInfo connectionFromJson(const JsonReader& json) {
  ConnectionInfo info;
  info.queuePair = json["queue_pair"].requireNumber<std::uint32_t>(largest24Bits);
  info.packetSequence = json["packet_sequence"].requireNumber<std::uint32_t>(largest24Bits);
  info.localId = json["lid"].requireNumber<std::uint16_t>();
  info.ethernet = json["ethernet"].requireFlag();
  info.globalHeader = json["grh_required"].requireFlag();
  info.partitions = partitionsFromJson(json["p_keys"]);
  info.mtu = json["mtu"].requireNumber<int>(largestMtu);
  info.address = json["address"].requireNumber();
  info.key = json["key"].requireNumber<std::uint32_t>();
  if (!parseHexBytes(json["gid"].requireText(), 0, info.gid) || info.mtu == 0) {
    throw Error("the other side sent an invalid GID or MTU",
                "run the same build of vfpass-probe on both sides");
  }
  return info;
}

ibv_ah_attr addressVector(const PathSource& source, const ConnectionInfo& peer) {
  // Routers and opensm's virt_default_hop_limit (2) need more than 1.
  constexpr std::uint8_t hopLimit = 64;
  if (peer.ethernet != (source.attributes.link_layer == IBV_LINK_LAYER_ETHERNET)) {
    throw Error("one side is on Ethernet, the other on InfiniBand",
                "choose ports of the same network on both sides");
  }
  if (!peer.ethernet && peer.localId == 0) {
    throw Error("the other side's port has LID 0",
                "check that the subnet manager configures that port");
  }
  ibv_ah_attr path{};
  path.port_num = source.port;
  path.dlid = peer.localId;
  if (!requiresGlobalHeader(source.attributes) && !peer.globalHeader) {
    return path;
  }
  if (std::ranges::all_of(peer.gid, [](std::uint8_t byte) { return byte == 0; })) {
    throw Error("the other side's port has no GID, which the path requires",
                "set the VF's GUIDs on the host, then choose a GID index that vfpass-probe "
                "inventory lists");
  }
  path.is_global = 1;
  path.grh.hop_limit = hopLimit;
  path.grh.sgid_index = static_cast<std::uint8_t>(source.gidIndex);
  std::memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  return path;
}

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

}  // namespace vfpass::probe
