#include "netlink/link_dump.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <array>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string addressReply(int family, int index, const char* text, int prefix,
                         int attribute = IFA_ADDRESS, int scope = RT_SCOPE_UNIVERSE) {
  const NetlinkMessage message = newMessage();
  nlmsg_put(message.get(), 0, 1, RTM_NEWADDR, 0, NLM_F_MULTI);
  ifaddrmsg head{};
  head.ifa_family = static_cast<std::uint8_t>(family);
  head.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
  head.ifa_scope = static_cast<std::uint8_t>(scope);
  head.ifa_index = static_cast<unsigned>(index);
  nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO);
  std::array<unsigned char, 16> bytes{};
  inet_pton(family, text, bytes.data());
  nla_put(message.get(), attribute, family == AF_INET6 ? 16 : 4, bytes.data());
  return bytesOf(message);
}

TEST(Addresses, ReturnsAddressesOfInterfaceWithPrefix) {
  const std::string dump = addressReply(AF_INET, 3, "192.0.2.1", 24, IFA_LOCAL) +
                           addressReply(AF_INET, 4, "192.0.2.2", 24, IFA_LOCAL) +
                           addressReply(AF_INET6, 3, "2001:db8::1", 64);
  EXPECT_THAT(parseAddresses(dump, 3), ElementsAre("192.0.2.1/24", "2001:db8::1/64"));
  EXPECT_THAT(parseAddresses(dump, 5), IsEmpty());
}

TEST(Addresses, SkipsLinkLocalIpv6) {
  EXPECT_THAT(
      parseAddresses(addressReply(AF_INET6, 3, "fe80::1", 64, IFA_ADDRESS, RT_SCOPE_LINK), 3),
      IsEmpty());
}

TEST(Addresses, SkipsTruncatedMessages) {
  const std::string whole = addressReply(AF_INET, 3, "192.0.2.1", 24);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(parseAddresses(whole.substr(0, length), 3), IsEmpty()) << length;
  }
}

TEST(Addresses, SkipsShortAttributes) {
  const NetlinkMessage message = newMessage();
  nlmsg_put(message.get(), 0, 1, RTM_NEWADDR, 0, 0);
  ifaddrmsg head{};
  head.ifa_family = AF_INET6;
  head.ifa_index = 3;
  nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO);
  nla_put_u32(message.get(), IFA_ADDRESS, 1);
  EXPECT_THAT(parseAddresses(bytesOf(message), 3), IsEmpty());
}

}  // namespace
}  // namespace vfpass::host
