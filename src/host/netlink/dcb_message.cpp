#include "netlink/dcb_message.hpp"

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

constexpr int headBytes = static_cast<int>(sizeof(dcbmsg));

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

bool isAbout(const nlattr* name, const std::string& netdev) {
  return name != nullptr && nla_len(name) == static_cast<int>(netdev.size() + 1) &&
         std::memcmp(nla_data(name), netdev.c_str(), netdev.size() + 1) == 0;
}

}  // namespace

std::string dcbQuery(const std::string& netdev) {
  const NetlinkMessage message = newMessage();
  requireRoom(nlmsg_put(message.get(), 0, 1, RTM_GETDCB, 0, NLM_F_REQUEST) != nullptr);
  dcbmsg head{};
  head.dcb_family = AF_UNSPEC;
  head.cmd = DCB_CMD_IEEE_GET;
  requireRoom(nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) == 0);
  requireRoom(nla_put_string(message.get(), DCB_ATTR_IFNAME, netdev.c_str()) == 0);
  return bytesOf(message);
}

std::optional<FlowControl> parseDcbReply(std::string_view bytes, const std::string& netdev) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(dcbmsg));
  if (header == nullptr || header->nlmsg_type != RTM_GETDCB ||
      !isAbout(nlmsg_find_attr(header, headBytes, DCB_ATTR_IFNAME), netdev)) {
    return std::nullopt;
  }
  nlattr* ieee = nlmsg_find_attr(header, headBytes, DCB_ATTR_IEEE);
  const nlattr* pfc = ieee == nullptr ? nullptr
                                      : nla_find(static_cast<nlattr*>(nla_data(ieee)),
                                                 nla_len(ieee), DCB_ATTR_IEEE_PFC);
  const auto settings = numberOf<ieee_pfc>(pfc);
  if (!settings) {
    return std::nullopt;
  }
  nlattr* table =
      nla_find(static_cast<nlattr*>(nla_data(ieee)), nla_len(ieee), DCB_ATTR_IEEE_APP_TABLE);
  return FlowControl{settings->pfc_en, table != nullptr && mapsDscp(table)};
}

}  // namespace vfpass::host
