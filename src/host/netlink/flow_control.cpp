#include "vfpass/host/flow_control.hpp"

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

constexpr int dcbHeadBytes = static_cast<int>(sizeof(dcbmsg));

bool mapsDscp(nlattr* table) {
  nlattr* entry = nullptr;
  int remaining = 0;
  nla_for_each_nested(entry, table, remaining) {
    const auto app = numberOf<dcb_app>(entry);
    if (nla_type(entry) == DCB_ATTR_IEEE_APP && app && app->selector == IEEE_8021QAZ_APP_SEL_DSCP) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string dcbQuery(const std::string& netdev) {
  dcbmsg head{};
  head.dcb_family = AF_UNSPEC;
  head.cmd = DCB_CMD_IEEE_GET;
  const NetlinkMessage message = startRequest(RTM_GETDCB, 0, head);
  requireRoom(nla_put_string(message.get(), DCB_ATTR_IFNAME, netdev.c_str()) == 0);
  return bytesOf(message);
}

std::optional<FlowControl> parseDcbReply(std::string_view bytes, const std::string& netdev) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(dcbmsg));
  if (header == nullptr || header->nlmsg_type != RTM_GETDCB ||
      !isText(nlmsg_find_attr(header, dcbHeadBytes, DCB_ATTR_IFNAME), netdev)) {
    return std::nullopt;
  }
  nlattr* ieee = nlmsg_find_attr(header, dcbHeadBytes, DCB_ATTR_IEEE);
  const auto settings = numberOf<ieee_pfc>(findNested(ieee, DCB_ATTR_IEEE_PFC));
  if (!settings) {
    return std::nullopt;
  }
  nlattr* table = findNested(ieee, DCB_ATTR_IEEE_APP_TABLE);
  return FlowControl{settings->pfc_en, table != nullptr && mapsDscp(table)};
}

std::optional<FlowControl> readFlowControl(const std::string& netdev,
                                           std::chrono::milliseconds deadline) {
  const ExchangePurpose purpose{netdev, "reading priority flow control", std::nullopt,
                                static_cast<int>(::if_nametoindex(netdev.c_str()))};
  return parseDcbReply(exchangeNetlink(NETLINK_ROUTE, dcbQuery(netdev), purpose, deadline), netdev);
}

}  // namespace vfpass::host
