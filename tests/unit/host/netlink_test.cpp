#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "link_messages.hpp"
#include "netlink/netlink_message.hpp"
#include "sriov/vf_port.hpp"
#include "unit/values.hpp"

namespace vfpass::host {
namespace {

constexpr int interfaceIndex = 7;

using messages::attribute;
using messages::bytes;
using messages::message;

std::string linkMessage(const std::string& attributes, int index = interfaceIndex) {
  ifinfomsg interface {};
  interface.ifi_index = index;
  return message(RTM_NEWLINK,
                 bytes(interface) + attribute(IFLA_IFNAME, std::string("ens1\0", 5)) + attributes);
}

std::string macOf(unsigned vf) {
  ifla_vf_mac mac{};
  mac.vf = vf;
  mac.mac[0] = 0x02;
  mac.mac[5] = static_cast<std::uint8_t>(vf);
  return attribute(IFLA_VF_MAC, bytes(mac));
}

// All attributes that the kernel sends for one VF of an Ethernet PF (rtnl_fill_vfinfo).
std::string fullVf(unsigned vf, const std::string& more = {}) {
  ifla_vf_vlan_info vlan{vf, 100, 3, htons(ETH_P_8021AD)};
  return attribute(
      IFLA_VF_INFO,
      macOf(vf) + attribute(IFLA_VF_BROADCAST, bytes(ifla_vf_broadcast{})) +
          attribute(IFLA_VF_VLAN, bytes(ifla_vf_vlan{vf, 100, 3})) +
          attribute(IFLA_VF_RATE, bytes(ifla_vf_rate{vf, 10, 1000})) +
          attribute(IFLA_VF_TX_RATE, bytes(ifla_vf_tx_rate{vf, 1000})) +
          attribute(IFLA_VF_SPOOFCHK, bytes(ifla_vf_spoofchk{vf, 1})) +
          attribute(IFLA_VF_LINK_STATE, bytes(ifla_vf_link_state{vf, IFLA_VF_LINK_STATE_DISABLE})) +
          attribute(IFLA_VF_TRUST, bytes(ifla_vf_trust{vf, 0})) +
          attribute(IFLA_VF_VLAN_LIST, attribute(IFLA_VF_VLAN_INFO, bytes(vlan))) + more);
}

std::string guids(unsigned vf, std::uint64_t node, std::uint64_t port) {
  ifla_vf_guid payload{};
  payload.vf = vf;
  payload.guid = node;
  std::string result = attribute(IFLA_VF_IB_NODE_GUID, bytes(payload));
  payload.guid = port;
  return result + attribute(IFLA_VF_IB_PORT_GUID, bytes(payload));
}

VfTable parse(const std::string& bytes, bool infiniband = false) {
  return parseLinkReply(bytes, interfaceIndex, infiniband).value();
}

TEST(LinkReply, ReadsEveryEthernetAttribute) {
  const auto table = parse(linkMessage(attribute(IFLA_VFINFO_LIST, fullVf(0) + fullVf(3))));
  ASSERT_EQ(table.size(), 2U);
  const VfSettings& vf = table.at(3);
  EXPECT_EQ(toString(*vf.mac), "02:00:00:00:00:03");
  EXPECT_EQ(vf.vlan, (Vlan{100, 3, VlanProtocol::dot1ad}));
  EXPECT_EQ(vf.rate, (Rate{10, 1000}));
  EXPECT_EQ(vf.spoofCheck, true);
  EXPECT_EQ(vf.trust, false);
  EXPECT_EQ(vf.linkState, LinkState::disable);
  EXPECT_FALSE(vf.nodeGuid || vf.portGuid);
}

TEST(LinkReply, TreatsUnreportedAttributesAsNotObservable) {
  const std::string info = macOf(1) +
                           attribute(IFLA_VF_SPOOFCHK, bytes(ifla_vf_spoofchk{1, 0xffffffffU})) +
                           attribute(IFLA_VF_LINK_STATE, bytes(ifla_vf_link_state{1, 9}));
  const auto vf =
      parse(linkMessage(attribute(IFLA_VFINFO_LIST, attribute(IFLA_VF_INFO, info)))).at(1);
  EXPECT_TRUE(vf.mac.has_value());
  EXPECT_FALSE(vf.spoofCheck || vf.trust || vf.linkState || vf.vlan || vf.rate);
}

TEST(LinkReply, IgnoresProtocolWithoutVlan) {
  ifla_vf_vlan_info none{1, 0, 0, htons(ETH_P_8021AD)};
  const std::string info =
      macOf(1) + attribute(IFLA_VF_VLAN_LIST, attribute(IFLA_VF_VLAN_INFO, bytes(none)));
  const auto vf =
      parse(linkMessage(attribute(IFLA_VFINFO_LIST, attribute(IFLA_VF_INFO, info)))).at(1);
  EXPECT_EQ(vf.vlan, Vlan{});
}

TEST(LinkReply, ReadsOnlyLinkStateAndGuidsOnInfiniband) {
  const std::string bytes =
      linkMessage(attribute(IFLA_VFINFO_LIST, fullVf(0, guids(0, 0x1122334455667788U, 0))));
  const auto vf = parse(bytes, true).at(0);
  EXPECT_EQ(toString(*vf.nodeGuid), "11:22:33:44:55:66:77:88");
  EXPECT_FALSE(vf.portGuid);  // 0: not known to mlx5
  EXPECT_FALSE(vf.mac || vf.vlan || vf.rate || vf.spoofCheck || vf.trust);
  EXPECT_EQ(vf.linkState, LinkState::disable);
}

TEST(LinkReply, ReadsFirstVfsOfWrappedList) {
  std::string list;
  for (unsigned vf = 0; vf < 300; ++vf) {
    list += fullVf(vf, attribute(IFLA_VF_STATS, std::string(96, 's')));
  }
  ASSERT_GT(list.size(), 65535U);
  const auto table = parse(linkMessage(attribute(IFLA_VFINFO_LIST, list)));
  EXPECT_GT(table.size(), 0U);
  EXPECT_LT(table.size(), 299U);
  for (const auto& [index, settings] : table) {
    EXPECT_EQ(settings.mac->bytes[5], index & 0xffU);
    EXPECT_LT(index, table.size());
  }
}

TEST(LinkReply, IgnoresValuesOfOtherVf) {
  const std::string info = macOf(1) + attribute(IFLA_VF_TRUST, bytes(ifla_vf_trust{2, 1}));
  const auto vf =
      parse(linkMessage(attribute(IFLA_VFINFO_LIST, attribute(IFLA_VF_INFO, info)))).at(1);
  EXPECT_FALSE(vf.trust);
}

TEST(TrafficReply, ReadsCountersAndSkipsVfsWithoutThem) {
  const std::string counters =
      attribute(IFLA_VF_STATS, attribute(IFLA_VF_STATS_RX_BYTES, bytes(std::uint64_t{1} << 40U)) +
                                   attribute(IFLA_VF_STATS_TX_BYTES, bytes(std::uint64_t{77})) +
                                   attribute(IFLA_VF_STATS_TX_PACKETS, bytes(std::uint64_t{3})));
  const std::string bytes = linkMessage(
      attribute(IFLA_VFINFO_LIST, fullVf(0) + attribute(IFLA_VF_INFO, macOf(1) + counters)));
  const auto table = parseTrafficReply(bytes, interfaceIndex);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(), 1U);
  EXPECT_EQ(table->at(1), (VfTraffic{std::uint64_t{1} << 40U, 77, 0, 3}));
  EXPECT_EQ(parseTrafficReply(bytes, interfaceIndex + 1), std::nullopt);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    static_cast<void>(parseTrafficReply(std::string_view(bytes).substr(0, length), interfaceIndex));
  }
}

TEST(StatisticsReply, ReadsEveryCounterThatTheKernelSends) {
  const std::string counters =
      attribute(IFLA_VF_STATS, attribute(IFLA_VF_STATS_RX_BYTES, bytes(std::uint64_t{1} << 40U)) +
                                   attribute(IFLA_VF_STATS_BROADCAST, bytes(std::uint64_t{2})) +
                                   attribute(IFLA_VF_STATS_MULTICAST, bytes(std::uint64_t{3})) +
                                   attribute(IFLA_VF_STATS_TX_DROPPED, bytes(std::uint64_t{4})) +
                                   attribute(IFLA_VF_STATS_RX_DROPPED, std::string("short")));
  const std::string bytes = linkMessage(
      attribute(IFLA_VFINFO_LIST, fullVf(0) + attribute(IFLA_VF_INFO, macOf(1) + counters)));
  const auto table = parseStatisticsReply(bytes, interfaceIndex);
  ASSERT_TRUE(table);
  EXPECT_EQ(*table, (VfStatisticsTable{{1,
                                        {{"rx_broadcast", 2},
                                         {"rx_bytes", std::uint64_t{1} << 40U},
                                         {"rx_multicast", 3},
                                         {"tx_dropped", 4}}}}));
  EXPECT_EQ(parseStatisticsReply(bytes, interfaceIndex + 1), std::nullopt);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    static_cast<void>(
        parseStatisticsReply(std::string_view(bytes).substr(0, length), interfaceIndex));
  }
}

TEST(Statistics, TrustsZerosOnlyFromDriverThatCounts) {
  const VfStatisticsTable zeros{{0, {{"rx_bytes", 0}}}, {1, {{"rx_bytes", 0}}}};
  const VfStatisticsTable counted{{0, {{"rx_bytes", 0}}}, {1, {{"rx_bytes", 9}}}};
  EXPECT_EQ(countedStatistics(zeros, "igb"), VfStatisticsTable{});
  EXPECT_EQ(countedStatistics(zeros, "mlx5_core"), zeros);
  EXPECT_EQ(countedStatistics(counted, "ice"), counted);
}

TEST(Traffic, TrustsZerosOnlyFromDriverThatCounts) {
  const VfTrafficTable zeros{{0, {}}, {1, {}}};
  EXPECT_EQ(trafficOf(zeros, 1, "igb"), std::nullopt);
  EXPECT_EQ(trafficOf(zeros, 1, "mlx5_core"), VfTraffic{});
  EXPECT_EQ(trafficOf(zeros, 2, "mlx5_core"), std::nullopt);
}

TEST(Traffic, TrustsZerosWhenOtherVfHasCounts) {
  const VfTrafficTable table{{0, {}}, {1, {5, 0, 1, 0}}};
  EXPECT_EQ(trafficOf(table, 0, "ice"), VfTraffic{});
  EXPECT_EQ(trafficOf(table, 1, "ice"), (VfTraffic{5, 0, 1, 0}));
}

TEST(LinkReply, RejectsOtherMessages) {
  const std::string list = attribute(IFLA_VFINFO_LIST, fullVf(0));
  EXPECT_FALSE(parseLinkReply(linkMessage(list, 8), interfaceIndex, false));
  EXPECT_FALSE(parseLinkReply(message(NLMSG_DONE, std::string(64, 0)), interfaceIndex, false));
  EXPECT_FALSE(parseLinkReply(message(RTM_NEWLINK, "abc"), interfaceIndex, false));
  EXPECT_FALSE(parseLinkReply("", interfaceIndex, false));
  EXPECT_TRUE(parse(linkMessage("")).empty());
}

TEST(LinkReply, ToleratesTruncation) {
  const std::string whole = linkMessage(attribute(IFLA_VFINFO_LIST, fullVf(0) + fullVf(1)));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // A truncated datagram: the header contains the full length.
    EXPECT_FALSE(parseLinkReply(whole.substr(0, length), interfaceIndex, false)) << length;
    // A shorter message: only the attributes that are present are read.
    std::string cut = whole.substr(0, length);
    if (length >= sizeof(nlmsghdr)) {
      const auto size = static_cast<std::uint32_t>(length);
      std::memcpy(cut.data(), &size, sizeof size);
      const auto table = parseLinkReply(cut, interfaceIndex, false);
      EXPECT_TRUE(!table || table->size() < 2) << length;
    }
  }
}

TEST(LinkReply, ToleratesRandomDamage) {
  std::mt19937 random(20241121);
  const std::string whole =
      linkMessage(attribute(IFLA_VFINFO_LIST, fullVf(0, guids(0, 1, 2)) + fullVf(1)));
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (int change = 0; change < 1 + round % 8; ++change) {
      const auto place = sizeof(nlmsghdr) + random() % (damaged.size() - sizeof(nlmsghdr));
      damaged[place] = static_cast<char>(random());
    }
    for (const bool infiniband : {false, true}) {
      const auto table = parseLinkReply(damaged, interfaceIndex, infiniband);
      EXPECT_TRUE(!table || table->size() <= 64);
    }
    static_cast<void>(parseAcknowledgement(damaged));
  }
}

std::string acknowledgement(int error, int flags, const std::string& behind) {
  nlmsgerr body{};
  body.error = error;
  body.msg.nlmsg_len = sizeof(nlmsghdr) + 40;
  return message(NLMSG_ERROR, bytes(body) + behind, flags);
}

TEST(Acknowledgement, ReadsErrorAndDriverMessage) {
  const std::string words = attribute(NLMSGERR_ATTR_MSG, std::string("no \033[1mtrust\0", 13));
  const auto capped =
      parseAcknowledgement(acknowledgement(-EOPNOTSUPP, NLM_F_CAPPED | NLM_F_ACK_TLVS, words));
  ASSERT_TRUE(capped);
  EXPECT_EQ(capped->error, EOPNOTSUPP);
  EXPECT_EQ(capped->message.find('\033'), std::string::npos);
  EXPECT_THAT(capped->message, testing::HasSubstr("trust"));
  const auto echoed =
      parseAcknowledgement(acknowledgement(-EINVAL, NLM_F_ACK_TLVS, std::string(40, 'e') + words));
  ASSERT_TRUE(echoed);
  EXPECT_THAT(echoed->message, testing::HasSubstr("trust"));
  EXPECT_EQ(parseAcknowledgement(acknowledgement(0, NLM_F_CAPPED, ""))->error, 0);
}

// mlx5 of Linux 6.1 sets this message in place of the cause (esw_offloads_start).
TEST(Acknowledgement, OmitsMessageThatIsNoCause) {
  EXPECT_EQ(reasonOf({EIO, "mlx5_core: Inline mode is different between vports"}),
            "Input/output error (EIO)");
  EXPECT_EQ(reasonOf({EOPNOTSUPP, "mlx5_core: Failed setting eswitch to offloads"}),
            "Operation not supported (EOPNOTSUPP): mlx5_core: Failed setting eswitch to offloads");
}

TEST(Acknowledgement, RejectsInvalidMessages) {
  EXPECT_FALSE(parseAcknowledgement(acknowledgement(5, 0, "")));
  EXPECT_FALSE(parseAcknowledgement(acknowledgement(-100000, 0, "")));
  EXPECT_FALSE(parseAcknowledgement(linkMessage("")));
  EXPECT_FALSE(parseAcknowledgement(message(NLMSG_ERROR, "ab")));
  EXPECT_FALSE(parseAcknowledgement("x"));
}

// Parses one of our messages like the kernel does, independently of the code under test.
std::vector<std::pair<int, std::string>> attributesOf(std::string_view bytes) {
  std::vector<std::pair<int, std::string>> found;
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    EXPECT_GE(header.nla_len, sizeof header);
    EXPECT_LE(header.nla_len, bytes.size());
    found.emplace_back(header.nla_type & NLA_TYPE_MASK,
                       bytes.substr(sizeof header, header.nla_len - sizeof header));
    bytes.remove_prefix(std::min<std::size_t>((header.nla_len + 3U) / 4U * 4U, bytes.size()));
  }
  EXPECT_TRUE(bytes.empty());
  return found;
}

std::vector<std::pair<int, std::string>> linkAttributes(const std::string& bytes) {
  return attributesOf(std::string_view(bytes).substr(sizeof(nlmsghdr) + sizeof(ifinfomsg)));
}

nlmsghdr headerOf(const std::string& bytes) {
  nlmsghdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

TEST(LinkChanges, PutsAllAttributesIntoOneMessage) {
  const auto messages = linkChanges(interfaceIndex, 5, {{2, everySetting()}});
  ASSERT_EQ(messages.size(), 1U);
  const nlmsghdr header = headerOf(messages[0]);
  EXPECT_EQ(header.nlmsg_type, RTM_SETLINK);
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
  EXPECT_EQ(header.nlmsg_len, messages[0].size());
  EXPECT_EQ(header.nlmsg_seq, 5U);
  ifinfomsg interface {};
  std::memcpy(&interface, messages[0].data() + sizeof header, sizeof interface);
  EXPECT_EQ(interface.ifi_index, interfaceIndex);

  const auto outer = linkAttributes(messages[0]);
  ASSERT_EQ(outer.size(), 1U);  // no IFLA_EXT_MASK: the VF list is not requested
  ASSERT_EQ(outer[0].first, IFLA_VFINFO_LIST);
  const auto vfs = attributesOf(outer[0].second);
  ASSERT_EQ(vfs.size(), 2U);
  ASSERT_EQ(vfs[0].first, IFLA_VF_INFO);
  const auto parts = attributesOf(vfs[0].second);
  std::vector<int> types;
  for (const auto& [type, payload] : parts) {
    types.push_back(type);
  }
  EXPECT_THAT(types,
              testing::ElementsAre(IFLA_VF_MAC, IFLA_VF_VLAN_LIST, IFLA_VF_RATE, IFLA_VF_SPOOFCHK,
                                   IFLA_VF_LINK_STATE, IFLA_VF_TRUST, IFLA_VF_IB_NODE_GUID));
  ASSERT_EQ(vfs[1].first, IFLA_VF_INFO);
  const auto port = attributesOf(vfs[1].second);
  ASSERT_EQ(port.size(), 1U) << "the kernel ignores attributes after a node GUID";
  EXPECT_EQ(port[0].first, IFLA_VF_IB_PORT_GUID);
  const auto vlans = attributesOf(parts[1].second);
  ifla_vf_vlan_info vlan{};
  ASSERT_EQ(vlans.at(0).second.size(), sizeof vlan);
  std::memcpy(&vlan, vlans[0].second.data(), sizeof vlan);
  EXPECT_EQ(vlan.vf, 2U);
  EXPECT_EQ(vlan.vlan, 100U);
  EXPECT_EQ(vlan.qos, 5U);
  EXPECT_EQ(vlan.vlan_proto, htons(ETH_P_8021AD));
  ifla_vf_guid guid{};
  ASSERT_EQ(parts.back().second.size(), sizeof guid);
  std::memcpy(&guid, parts.back().second.data(), sizeof guid);
  EXPECT_EQ(guid.guid, 0x1122334455667788U);
}

TEST(LinkChanges, SendsOnlyRequestedAttributes) {
  VfSettings trust;
  trust.trust = false;
  const auto messages = linkChanges(interfaceIndex, 1, {{0, trust}});
  const auto parts = attributesOf(attributesOf(linkAttributes(messages.at(0))[0].second)[0].second);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].first, IFLA_VF_TRUST);
  EXPECT_TRUE(linkChanges(interfaceIndex, 1, {}).empty());
}

TEST(LinkChanges, RoundTripsThroughReplyParser) {
  auto messages = linkChanges(interfaceIndex, 1, {{1, everySetting()}});
  const std::uint16_t type = RTM_NEWLINK;
  std::memcpy(messages.at(0).data() + offsetof(nlmsghdr, nlmsg_type), &type, sizeof type);
  VfSettings ethernet = everySetting();
  ethernet.nodeGuid.reset();
  ethernet.portGuid.reset();
  ethernet.msixVectors.reset();
  EXPECT_EQ(parse(messages[0]).at(1), ethernet);
}

TEST(LinkChanges, SplitsAtLimitWithoutLosingVfs) {
  std::vector<VfRequest> requests;
  for (unsigned vf = 0; vf < 300; ++vf) {
    requests.push_back({vf, everySetting()});
  }
  const auto messages = linkChanges(interfaceIndex, 1, requests);
  EXPECT_EQ(messages.size(), 3U);
  std::size_t total = 0;
  for (const std::string& message : messages) {
    EXPECT_LE(message.size(), requestLimit);
    total += attributesOf(linkAttributes(message).at(0).second).size();
  }
  EXPECT_EQ(total, 600U) << "two entries each: the port GUID has its own";
  EXPECT_EQ(linkChanges(interfaceIndex, 1, {requests.begin(), requests.begin() + 120}).size(), 1U);
}

TEST(LinkQuery, RequestsVfsWithoutStatistics) {
  const std::string bytes = linkQuery(interfaceIndex, 9);
  EXPECT_EQ(headerOf(bytes).nlmsg_type, RTM_GETLINK);
  EXPECT_EQ(headerOf(bytes).nlmsg_flags, NLM_F_REQUEST);
  const auto parts = linkAttributes(bytes);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].first, IFLA_EXT_MASK);
  std::uint32_t mask = 0;
  std::memcpy(&mask, parts[0].second.data(), sizeof mask);
  EXPECT_EQ(mask, static_cast<std::uint32_t>(RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS));
}

}  // namespace
}  // namespace vfpass::host
