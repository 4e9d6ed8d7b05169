#include "vfpass/host/flow_control.hpp"

#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include <cstring>

#include "link_messages.hpp"

namespace vfpass::host {
namespace {

using messages::attribute;
using messages::bytes;

std::string pfc(std::uint8_t priorities) {
  ieee_pfc settings{};
  settings.pfc_cap = 8;
  settings.pfc_en = priorities;
  return attribute(DCB_ATTR_IEEE_PFC, bytes(settings));
}

std::string apps(std::uint8_t selector) {
  dcb_app app{};
  app.selector = selector;
  app.priority = 3;
  app.protocol = 26;
  return attribute(DCB_ATTR_IEEE_APP_TABLE, attribute(DCB_ATTR_IEEE_APP, bytes(app)));
}

std::string reply(const std::string& ieee, const std::string& netdev = "ens1",
                  std::uint16_t type = RTM_GETDCB) {
  dcbmsg head{};
  head.cmd = DCB_CMD_IEEE_GET;
  const std::string payload =
      bytes(head) + attribute(DCB_ATTR_IFNAME, netdev + '\0') + attribute(DCB_ATTR_IEEE, ieee);
  return messages::message(type, payload);
}

TEST(Dcb, ReadsPausedPrioritiesAndDscpTrust) {
  EXPECT_EQ(parseDcbReply(reply(pfc(0x08)), "ens1"), (FlowControl{0x08, false}));
  EXPECT_EQ(parseDcbReply(reply(pfc(0) + apps(IEEE_8021QAZ_APP_SEL_DSCP)), "ens1"),
            (FlowControl{0, true}));
  EXPECT_EQ(parseDcbReply(reply(pfc(0) + apps(IEEE_8021QAZ_APP_SEL_ETHERTYPE)), "ens1"),
            (FlowControl{0, false}));
}

TEST(Dcb, RejectsInvalidReplies) {
  EXPECT_EQ(parseDcbReply("", "ens1"), std::nullopt);
  EXPECT_EQ(parseDcbReply(reply(pfc(8), "ens2"), "ens1"), std::nullopt);
  EXPECT_EQ(parseDcbReply(reply(pfc(8), "ens1", RTM_NEWLINK), "ens1"), std::nullopt);
  EXPECT_EQ(parseDcbReply(reply(apps(5)), "ens1"), std::nullopt);  // no PFC attribute
  EXPECT_EQ(parseDcbReply(reply(attribute(DCB_ATTR_IEEE_PFC, "\x08")), "ens1"), std::nullopt);
  const std::string whole = reply(pfc(8) + apps(5));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(parseDcbReply(whole.substr(0, length), "ens1"), std::nullopt) << length;
  }
}

TEST(Dcb, NamesNetdevInQuery) {
  const std::string query = dcbQuery("ens1");
  nlmsghdr header{};
  std::memcpy(&header, query.data(), sizeof header);
  EXPECT_EQ(header.nlmsg_type, RTM_GETDCB);
  EXPECT_NE(query.find(std::string("ens1\0", 5)), std::string::npos);
}

// Queries the running kernel, which an unprivileged user may do.
TEST(Dcb, ReportsNoneForLoopback) {
  EXPECT_EQ(readFlowControl("lo", std::chrono::milliseconds(5000)), std::nullopt);
}

}  // namespace

}  // namespace vfpass::host
