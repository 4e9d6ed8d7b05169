#include "netlink/link_dump.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>

#include <cerrno>

#include "link_messages.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(LinkDump, ReadsLinkAttributes) {
  const LinkDump dump = messages::readLinks(
      messages::link(7, IFF_UP,
                     {messages::text(IFLA_IFNAME, "ens1f0v3"), messages::number(IFLA_MASTER, 9),
                      messages::text(IFLA_PARENT_DEV_NAME, "0000:3b:00.2"),
                      messages::text(IFLA_PARENT_DEV_BUS_NAME, "pci")}) +
      messages::link(9, 0, {messages::text(IFLA_IFNAME, "br0"), messages::kind("bridge")}) +
      messages::link(11, 0,
                     {messages::text(IFLA_IFNAME, "mv0"), messages::kind("macvlan"),
                      messages::number(IFLA_LINK, 7), messages::number(IFLA_LINK_NETNSID, 3)}) +
      messages::done());
  EXPECT_EQ(dump.error, 0);
  EXPECT_FALSE(dump.interrupted);
  ASSERT_THAT(dump.links, SizeIs(3));
  EXPECT_EQ(dump.links[0].index, 7);
  EXPECT_TRUE(dump.links[0].up);
  EXPECT_EQ(dump.links[0].master, 9);
  EXPECT_EQ(dump.links[0].parentName, "0000:3b:00.2");
  EXPECT_EQ(dump.links[0].parentBus, "pci");
  EXPECT_EQ(dump.links[0].lowerNamespace, std::nullopt);
  EXPECT_FALSE(dump.links[1].up);
  EXPECT_EQ(dump.links[1].kind, "bridge");
  EXPECT_EQ(dump.links[2].lower, 7);
  EXPECT_EQ(dump.links[2].lowerNamespace, 3);
}

TEST(LinkDump, ReportsErrorAndInterruption) {
  EXPECT_EQ(messages::readLinks("").error, EBADMSG);
  EXPECT_EQ(messages::readLinks(messages::link(1, 0, {})).error, EBADMSG);
  EXPECT_EQ(messages::readLinks(messages::done(-EPERM)).error, EPERM);
  EXPECT_EQ(messages::readAddresses(messages::done(-ENOMEM)).error, ENOMEM);
  EXPECT_TRUE(messages::readLinks(messages::link(1, 0, {}, NLM_F_DUMP_INTR) + messages::done())
                  .interrupted);
}

TEST(LinkDump, ToleratesMalformedMessages) {
  const std::string whole =
      messages::link(
          7, IFF_UP,
          {messages::text(IFLA_IFNAME, "ens1f0v3"), messages::number(IFLA_MASTER, 9),
           messages::kind("bond"), messages::text(IFLA_PARENT_DEV_NAME, "0000:3b:00.2")}) +
      messages::done();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const LinkDump dump = messages::readLinks(whole.substr(0, length));
    EXPECT_EQ(dump.error, EBADMSG) << length;
    EXPECT_THAT(messages::readAddresses(whole.substr(0, length)).interfaces, IsEmpty());
    EXPECT_EQ(parseNamespaceId(whole.substr(0, length)), std::nullopt);
  }
  // Corrupt every single byte, once with all bits set and once with none.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\xff', '\0'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      for (const Link& link : messages::readLinks(damaged).links) {
        EXPECT_GT(link.index, 0);
        EXPECT_LE(link.name.size(), whole.size());
      }
    }
  }
}

// In a namespace of their own, users can create any number of links.
TEST(LinkDump, KeepsOnlyLinksOfDevicesWhereAsked) {
  LinkDump dump;
  for (int i = 0; i < 1000; ++i) {
    addLinks(messages::link(100 + i, 0, {messages::text(IFLA_IFNAME, "dummy")}),
             LinkScope::ofDevices, dump);
  }
  addLinks(messages::link(7, 0, {messages::text(IFLA_PARENT_DEV_NAME, "0000:3b:00.2")}) +
               messages::link(8, 0, {messages::number(IFLA_LINK, 3)}),
           LinkScope::ofDevices, dump);
  EXPECT_EQ(dump.error, EBADMSG);
  addLinks(messages::link(9, 0, {messages::number(IFLA_LINK_NETNSID, 0)}) + messages::done(),
           LinkScope::ofDevices, dump);
  EXPECT_EQ(dump.error, 0);
  EXPECT_THAT(dump.links,
              ElementsAre(testing::Field(&Link::index, 7), testing::Field(&Link::index, 9)));
}

TEST(LinkDump, SkipsShortNumbers) {
  const LinkDump dump = messages::readLinks(
      messages::link(7, 0,
                     {messages::attribute(IFLA_MASTER, "ab"), messages::attribute(IFLA_LINK, "")}) +
      messages::done());
  ASSERT_THAT(dump.links, SizeIs(1));
  EXPECT_EQ(dump.links[0].master, 0);
  EXPECT_EQ(dump.links[0].lower, 0);
}

TEST(AddressDump, IgnoresLinkLocalIpv6Addresses) {
  const AddressDump dump =
      messages::readAddresses(messages::address(AF_INET6, RT_SCOPE_LINK, 3) +
                              messages::address(AF_INET6, RT_SCOPE_UNIVERSE, 4) +
                              messages::address(AF_INET, RT_SCOPE_LINK, 5) + messages::done());
  EXPECT_EQ(dump.error, 0);
  EXPECT_THAT(dump.interfaces, ElementsAre(4, 5));
}

TEST(NamespaceId, ReadsAssignedIdOnly) {
  EXPECT_EQ(parseNamespaceId(messages::namespaceId(4)), 4);
  EXPECT_EQ(parseNamespaceId(messages::namespaceId(NETNSA_NSID_NOT_ASSIGNED)), std::nullopt);
  EXPECT_EQ(parseNamespaceId(messages::done()), std::nullopt);
  EXPECT_EQ(parseNamespaceId(""), std::nullopt);
}

}  // namespace
}  // namespace vfpass::host
