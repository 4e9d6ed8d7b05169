#include "rdma/queue_pair_connection.hpp"

#include <nlohmann/json.hpp>

#include "channel/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr std::uint64_t largest24Bits = 0xffffff;
constexpr std::uint64_t largestMtu = 5;  // IBV_MTU_4096

PartitionTable partitionsFromJson(const nlohmann::json& json) {
  const nlohmann::json& keys = listMember(json, "p_keys", maxPartitions);
  PartitionTable table;
  for (const nlohmann::json& key : keys) {
    table.push_back(static_cast<std::uint16_t>(numberIn(key, "p_keys", UINT16_MAX)));
  }
  return table;
}

}  // namespace

nlohmann::json toJson(const ConnectionInfo& info) {
  return {{"queue_pair", info.queuePair}, {"packet_sequence", info.packetSequence},
          {"lid", info.localId},          {"gid", hexBytes(info.gid, "")},
          {"ethernet", info.ethernet},    {"grh_required", info.globalHeader},
          {"p_keys", info.partitions},    {"mtu", static_cast<unsigned>(info.mtu)},
          {"address", info.address},      {"key", info.key}};
}

ConnectionInfo connectionFromJson(const nlohmann::json& json) {
  ConnectionInfo info;
  info.queuePair = static_cast<std::uint32_t>(numberMember(json, "queue_pair", largest24Bits));
  info.packetSequence =
      static_cast<std::uint32_t>(numberMember(json, "packet_sequence", largest24Bits));
  info.localId = static_cast<std::uint16_t>(numberMember(json, "lid", UINT16_MAX));
  info.ethernet = flagMember(json, "ethernet");
  info.globalHeader = flagMember(json, "grh_required");
  info.partitions = partitionsFromJson(json);
  info.mtu = static_cast<int>(numberMember(json, "mtu", largestMtu));
  info.address = numberMember(json, "address");
  info.key = static_cast<std::uint32_t>(numberMember(json, "key", UINT32_MAX));
  if (!parseHexBytes(textMember(json, "gid"), 0, info.gid) || info.mtu == 0) {
    throw Error("the other side sent an invalid GID or MTU",
                "run the same build of vfpass-probe on both sides");
  }
  return info;
}

}  // namespace vfpass::probe
