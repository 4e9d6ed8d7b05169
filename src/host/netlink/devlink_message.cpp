#include "netlink/devlink_message.hpp"

#include <linux/devlink.h>
#include <linux/netlink.h>
#include <netlink/genl/genl.h>

#include "vfpass/host/link_settings.hpp"

namespace vfpass::host {
namespace {

NetlinkMessage startGeneric(int family, int flags, std::uint8_t command) {
  NetlinkMessage message = newMessage();
  requireRoom(genlmsg_put(message.get(), 0, 1, family, 0, NLM_F_REQUEST | flags, command,
                          DEVLINK_GENL_VERSION) != nullptr);
  return message;
}

std::string devlinkFamilyQuery() {
  const auto message = startGeneric(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
  requireRoom(nla_put_string(message.get(), CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME) == 0);
  return bytesOf(message);
}

}  // namespace

NetlinkMessage startDevlink(std::uint16_t family, int flags, std::uint8_t command,
                            const PciAddress& pf) {
  NetlinkMessage message = startGeneric(family, flags, command);
  requireRoom(nla_put_string(message.get(), DEVLINK_ATTR_BUS_NAME, "pci") == 0);
  requireRoom(nla_put_string(message.get(), DEVLINK_ATTR_DEV_NAME, toString(pf).c_str()) == 0);
  return message;
}

nlattr* attributeOf(nlmsghdr* header, int type) {
  return nlmsg_find_attr(header, genericHeadBytes, type);
}

std::optional<std::uint16_t> parseFamily(std::string_view bytes) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(genlmsghdr));
  if (header == nullptr || header->nlmsg_type != GENL_ID_CTRL ||
      !isText(attributeOf(header, CTRL_ATTR_FAMILY_NAME), DEVLINK_GENL_NAME)) {
    return std::nullopt;
  }
  return numberOf<std::uint16_t>(attributeOf(header, CTRL_ATTR_FAMILY_ID));
}

std::optional<std::uint16_t> devlinkFamily(const ExchangePurpose& purpose,
                                           std::chrono::milliseconds deadline) {
  return parseFamily(exchangeNetlink(NETLINK_GENERIC, devlinkFamilyQuery(), purpose, deadline));
}

}  // namespace vfpass::host
