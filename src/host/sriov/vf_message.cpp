#include "sriov/vf_port.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <algorithm>
#include <array>
#include <utility>

#include "netlink/netlink_message.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// Upper bound for all attributes of one VF, including headers and nesting.
constexpr std::size_t perVfBytes = 256;
constexpr std::size_t fixedBytes = 128;

template <typename Payload>
void put(nl_msg* message, int type, const Payload& payload) {
  requireRoom(nla_put(message, type, sizeof payload, &payload) == 0);
}

template <typename Fill>
void nest(nl_msg* message, int type, Fill fill) {
  nlattr* start = nla_nest_start(message, type);
  requireRoom(start != nullptr);
  fill();
  requireRoom(nla_nest_end(message, start) == 0);
}

NetlinkMessage startMessage(int type, int flags, int interfaceIndex, std::uint32_t sequence,
                            std::size_t size) {
  NetlinkMessage message(nlmsg_alloc_size(size), nlmsg_free);
  requireRoom(message && nlmsg_put(message.get(), 0, sequence, type, 0, flags) != nullptr);
  ifinfomsg interface {};
  interface.ifi_family = AF_UNSPEC;
  interface.ifi_index = interfaceIndex;
  requireRoom(nlmsg_append(message.get(), &interface, sizeof interface, NLMSG_ALIGNTO) == 0);
  return message;
}

void putMac(nl_msg* message, unsigned index, const MacAddress& mac) {
  ifla_vf_mac payload{};
  payload.vf = index;
  std::copy(mac.bytes.begin(), mac.bytes.end(), payload.mac);
  put(message, IFLA_VF_MAC, payload);
}

// IFLA_VF_VLAN has no protocol field; the list form has one, in network byte order.
void putVlan(nl_msg* message, unsigned index, const Vlan& vlan) {
  ifla_vf_vlan_info payload{};
  payload.vf = index;
  payload.vlan = vlan.id;
  payload.qos = vlan.qos;
  payload.vlan_proto = htons(vlan.protocol == VlanProtocol::dot1ad ? ETH_P_8021AD : ETH_P_8021Q);
  nest(message, IFLA_VF_VLAN_LIST, [&] { put(message, IFLA_VF_VLAN_INFO, payload); });
}

void putGuid(nl_msg* message, int type, unsigned index, const Guid& guid) {
  ifla_vf_guid payload{};
  payload.vf = index;
  payload.guid = guid.value;  // host byte order, as the kernel expects
  put(message, type, payload);
}

unsigned kernelValue(LinkState state) {
  switch (state) {
    case LinkState::enable:
      return IFLA_VF_LINK_STATE_ENABLE;
    case LinkState::disable:
      return IFLA_VF_LINK_STATE_DISABLE;
    case LinkState::automatic:
      break;
  }
  return IFLA_VF_LINK_STATE_AUTO;
}

void putVf(nl_msg* message, const VfRequest& request) {
  const VfSettings& settings = request.settings;
  if (settings.mac) {
    putMac(message, request.index, *settings.mac);
  }
  if (settings.vlan) {
    putVlan(message, request.index, *settings.vlan);
  }
  if (settings.rate) {
    put(message, IFLA_VF_RATE, ifla_vf_rate{request.index, settings.rate->min, settings.rate->max});
  }
  if (settings.spoofCheck) {
    put(message, IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{request.index, *settings.spoofCheck});
  }
  if (settings.linkState) {
    put(message, IFLA_VF_LINK_STATE,
        ifla_vf_link_state{request.index, kernelValue(*settings.linkState)});
  }
  if (settings.trust) {
    put(message, IFLA_VF_TRUST, ifla_vf_trust{request.index, *settings.trust});
  }
  if (settings.nodeGuid) {
    putGuid(message, IFLA_VF_IB_NODE_GUID, request.index, *settings.nodeGuid);
  }
}

// do_setvfinfo returns after setting a node GUID, so a port GUID in the same entry would be
// silently ignored. It gets an entry of its own.
void putEntries(nl_msg* message, const VfRequest& request) {
  VfRequest first = request;
  first.settings.portGuid.reset();
  if (first.settings != VfSettings{}) {
    nest(message, IFLA_VF_INFO, [&] { putVf(message, first); });
  }
  if (request.settings.portGuid) {
    nest(message, IFLA_VF_INFO, [&] {
      putGuid(message, IFLA_VF_IB_PORT_GUID, request.index, *request.settings.portGuid);
    });
  }
}

std::string queryWith(std::uint32_t filter, int interfaceIndex, std::uint32_t sequence) {
  const NetlinkMessage message =
      startMessage(RTM_GETLINK, NLM_F_REQUEST, interfaceIndex, sequence, fixedBytes);
  put(message.get(), IFLA_EXT_MASK, filter);
  return bytesOf(message);
}

}  // namespace

std::string linkQuery(int interfaceIndex, std::uint32_t sequence) {
  return queryWith(RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS, interfaceIndex, sequence);
}

std::string trafficQuery(int interfaceIndex, std::uint32_t sequence) {
  return queryWith(RTEXT_FILTER_VF, interfaceIndex, sequence);
}

std::vector<std::string> linkChanges(int interfaceIndex, std::uint32_t sequence,
                                     const std::vector<VfRequest>& requests, std::size_t limit) {
  const std::size_t room = std::max(limit, fixedBytes + perVfBytes) - fixedBytes;
  const std::size_t batch = room / perVfBytes;
  std::vector<std::string> messages;
  for (std::size_t first = 0; first < requests.size(); first += batch) {
    const std::size_t end = std::min(first + batch, requests.size());
    const NetlinkMessage message =
        startMessage(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, interfaceIndex,
                     sequence + static_cast<std::uint32_t>(messages.size()),
                     fixedBytes + (end - first) * perVfBytes);
    nest(message.get(), IFLA_VFINFO_LIST, [&] {
      for (std::size_t i = first; i < end; ++i) {
        putEntries(message.get(), requests[i]);
      }
    });
    messages.push_back(bytesOf(message));
  }
  return messages;
}

namespace {

using VfAttributes = std::array<nlattr*, IFLA_VF_MAX + 1>;

// The payload as this struct; nullopt when it is too short, or about another VF.
template <typename Payload>
std::optional<Payload> payloadOf(const VfAttributes& attributes, int type, unsigned index) {
  const auto payload = numberOf<Payload>(attributes[static_cast<std::size_t>(type)]);
  return payload && payload->vf == index ? payload : std::nullopt;
}

// ID 0 and priority 0 mean no VLAN; the protocol is then irrelevant.
std::optional<Vlan> toVlan(unsigned id, unsigned qos, VlanProtocol protocol) {
  if (id > 4095 || qos > 7) {
    return std::nullopt;
  }
  if (id == 0 && qos == 0) {
    return Vlan{};
  }
  return Vlan{static_cast<std::uint16_t>(id), static_cast<std::uint8_t>(qos), protocol};
}

std::optional<Vlan> readVlan(const VfAttributes& attributes, unsigned index) {
  if (nlattr* list = attributes[IFLA_VF_VLAN_LIST]; list != nullptr) {
    std::array<nlattr*, IFLA_VF_VLAN_INFO_MAX + 1> entries{};
    if (nla_parse_nested(entries.data(), IFLA_VF_VLAN_INFO_MAX, list, nullptr) == 0) {
      const auto info = numberOf<ifla_vf_vlan_info>(entries[IFLA_VF_VLAN_INFO]);
      if (info && info->vf == index) {
        const bool outer = info->vlan_proto == htons(ETH_P_8021AD);
        return toVlan(info->vlan, info->qos, outer ? VlanProtocol::dot1ad : VlanProtocol::dot1q);
      }
    }
  }
  const auto plain = payloadOf<ifla_vf_vlan>(attributes, IFLA_VF_VLAN, index);
  return plain ? toVlan(plain->vlan, plain->qos, VlanProtocol::dot1q) : std::nullopt;
}

std::optional<Rate> readRate(const VfAttributes& attributes, unsigned index) {
  if (const auto rate = payloadOf<ifla_vf_rate>(attributes, IFLA_VF_RATE, index)) {
    return Rate{rate->min_tx_rate, rate->max_tx_rate};
  }
  return std::nullopt;
}

// The kernel presets spoof check and trust to -1 for drivers that do not report them (rtnetlink.c).
template <typename Payload>
std::optional<bool> readSwitch(const VfAttributes& attributes, int type, unsigned index) {
  const auto payload = payloadOf<Payload>(attributes, type, index);
  if (!payload || payload->setting > 1) {
    return std::nullopt;
  }
  return payload->setting == 1;
}

std::optional<LinkState> readLinkState(const VfAttributes& attributes, unsigned index) {
  const auto payload = payloadOf<ifla_vf_link_state>(attributes, IFLA_VF_LINK_STATE, index);
  if (!payload) {
    return std::nullopt;
  }
  switch (payload->link_state) {
    case IFLA_VF_LINK_STATE_AUTO:
      return LinkState::automatic;
    case IFLA_VF_LINK_STATE_ENABLE:
      return LinkState::enable;
    case IFLA_VF_LINK_STATE_DISABLE:
      return LinkState::disable;
    default:
      return std::nullopt;
  }
}

// mlx5 only reports GUIDs that were set over netlink, and 0 for all others: not observable.
std::optional<Guid> readGuid(const VfAttributes& attributes, int type, unsigned index) {
  const auto payload = payloadOf<ifla_vf_guid>(attributes, type, index);
  return payload && payload->guid != 0 ? std::optional(Guid{payload->guid}) : std::nullopt;
}

VfSettings readEthernet(const VfAttributes& attributes, unsigned index, const ifla_vf_mac& mac) {
  VfSettings settings;
  settings.mac.emplace();
  std::copy_n(mac.mac, settings.mac->bytes.size(), settings.mac->bytes.begin());
  settings.vlan = readVlan(attributes, index);
  settings.rate = readRate(attributes, index);
  settings.spoofCheck = readSwitch<ifla_vf_spoofchk>(attributes, IFLA_VF_SPOOFCHK, index);
  settings.trust = readSwitch<ifla_vf_trust>(attributes, IFLA_VF_TRUST, index);
  return settings;
}

// Reads the attributes in one VF's entry and returns its MAC attribute, which contains the VF's
// index; every entry has one, even on InfiniBand. Nullopt for anything else.
std::optional<ifla_vf_mac> openEntry(nlattr* info, VfAttributes& attributes) {
  if (nla_type(info) != IFLA_VF_INFO ||
      nla_parse_nested(attributes.data(), IFLA_VF_MAX, info, nullptr) != 0) {
    return std::nullopt;
  }
  const auto mac = numberOf<ifla_vf_mac>(attributes[IFLA_VF_MAC]);
  return mac && mac->vf <= 65535 ? mac : std::nullopt;
}

void readVf(nlattr* info, bool infiniband, VfTable& table) {
  VfAttributes attributes{};
  const auto mac = openEntry(info, attributes);
  if (!mac || table.contains(mac->vf)) {
    return;
  }
  const unsigned index = mac->vf;
  VfSettings settings = infiniband ? VfSettings{} : readEthernet(attributes, index, *mac);
  settings.linkState = readLinkState(attributes, index);
  if (infiniband) {
    settings.nodeGuid = readGuid(attributes, IFLA_VF_IB_NODE_GUID, index);
    settings.portGuid = readGuid(attributes, IFLA_VF_IB_PORT_GUID, index);
  }
  table.emplace(index, settings);
}

constexpr const char* countingDriver = "mlx5_core";

using Counters = std::array<nlattr*, IFLA_VF_STATS_MAX + 1>;

// Calls `read` with the VF's index and counters, unless the entry has none.
template <typename Read>
void readCounters(nlattr* info, Read read) {
  VfAttributes attributes{};
  Counters counters{};
  const auto mac = openEntry(info, attributes);
  nlattr* const list = attributes[IFLA_VF_STATS];
  if (!mac || list == nullptr ||
      nla_parse_nested(counters.data(), IFLA_VF_STATS_MAX, list, nullptr) != 0) {
    return;
  }
  read(mac->vf, counters);
}

std::uint64_t counter(nlattr* attribute) { return numberOf<std::uint64_t>(attribute).value_or(0); }

VfTraffic trafficIn(const Counters& counters) {
  return {counter(counters[IFLA_VF_STATS_RX_BYTES]), counter(counters[IFLA_VF_STATS_TX_BYTES]),
          counter(counters[IFLA_VF_STATS_RX_PACKETS]), counter(counters[IFLA_VF_STATS_TX_PACKETS])};
}

// The kernel counts received broadcasts and multicasts only (if_link.h).
constexpr std::array<std::pair<const char*, int>, 8> statistics{
    std::pair{"rx_broadcast", IFLA_VF_STATS_BROADCAST}, {"rx_bytes", IFLA_VF_STATS_RX_BYTES},
    {"rx_dropped", IFLA_VF_STATS_RX_DROPPED},           {"rx_multicast", IFLA_VF_STATS_MULTICAST},
    {"rx_packets", IFLA_VF_STATS_RX_PACKETS},           {"tx_bytes", IFLA_VF_STATS_TX_BYTES},
    {"tx_dropped", IFLA_VF_STATS_TX_DROPPED},           {"tx_packets", IFLA_VF_STATS_TX_PACKETS}};

VfStatistics statisticsIn(const Counters& counters) {
  VfStatistics found;
  for (const auto& [name, type] : statistics) {
    if (const auto value = numberOf<std::uint64_t>(counters[static_cast<std::size_t>(type)])) {
      found.emplace(name, *value);
    }
  }
  return found;
}

// When the length of the list has wrapped, its tail looks like further attributes of the link. So
// use the first list only and ignore everything after it.
nlattr* findVfList(nlmsghdr* header) {
  nlattr* attribute = nullptr;
  int remaining = 0;
  nlmsg_for_each_attr(attribute, header, static_cast<int>(sizeof(ifinfomsg)), remaining) {
    if (nla_type(attribute) == IFLA_VFINFO_LIST) {
      return attribute;
    }
  }
  return nullptr;
}

// Calls `read` for each VF of a message about this interface; false when the message is about
// anything else.
template <typename Reader>
bool forEachVf(std::string_view bytes, int interfaceIndex, Reader read) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(ifinfomsg));
  if (header == nullptr || header->nlmsg_type != RTM_NEWLINK ||
      static_cast<const ifinfomsg*>(nlmsg_data(header))->ifi_index != interfaceIndex) {
    return false;
  }
  if (nlattr* list = findVfList(header); list != nullptr) {
    nlattr* info = nullptr;
    int remaining = 0;
    nla_for_each_nested(info, list, remaining) { read(info); }
  }
  return true;
}

// A table of what `valueIn` finds in the counters of each VF.
template <typename Table, typename Value>
std::optional<Table> parseCounters(std::string_view bytes, int interfaceIndex, Value valueIn) {
  Table table;
  const bool about = forEachVf(bytes, interfaceIndex, [&](nlattr* info) {
    readCounters(info, [&](unsigned index, const Counters& counters) {
      table.emplace(index, valueIn(counters));
    });
  });
  return about ? std::optional(std::move(table)) : std::nullopt;
}

}  // namespace

std::optional<VfTable> parseLinkReply(std::string_view bytes, int interfaceIndex, bool infiniband) {
  VfTable table;
  const bool about =
      forEachVf(bytes, interfaceIndex, [&](nlattr* info) { readVf(info, infiniband, table); });
  return about ? std::optional(table) : std::nullopt;
}

std::optional<VfTrafficTable> parseTrafficReply(std::string_view bytes, int interfaceIndex) {
  return parseCounters<VfTrafficTable>(bytes, interfaceIndex, trafficIn);
}

std::optional<VfStatisticsTable> parseStatisticsReply(std::string_view bytes, int interfaceIndex) {
  return parseCounters<VfStatisticsTable>(bytes, interfaceIndex, statisticsIn);
}

VfStatisticsTable countedStatistics(VfStatisticsTable table, std::string_view driver) {
  const bool counts =
      driver == countingDriver || std::ranges::any_of(table, [](const auto& vf) {
        return std::ranges::any_of(vf.second, [](const auto& each) { return each.second != 0; });
      });
  return counts ? std::move(table) : VfStatisticsTable{};
}

std::optional<VfTraffic> trafficOf(const VfTrafficTable& table, unsigned index,
                                   std::string_view driver) {
  const bool counts = driver == countingDriver || std::ranges::any_of(table, [](const auto& entry) {
                        return entry.second != VfTraffic{};
                      });
  const auto found = table.find(index);
  return counts && found != table.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace vfpass::host
