#include "netlink/devlink_message.hpp"

#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <netlink/genl/genl.h>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

constexpr int headBytes = static_cast<int>(NLMSG_ALIGN(sizeof(genlmsghdr)));

NetlinkMessage startGeneric(int family, int flags, std::uint8_t command) {
  NetlinkMessage message = newMessage();
  requireRoom(genlmsg_put(message.get(), 0, 1, family, 0, NLM_F_REQUEST | flags, command,
                          DEVLINK_GENL_VERSION) != nullptr);
  return message;
}

NetlinkMessage startDevlink(std::uint16_t family, int flags, std::uint8_t command,
                            const PciAddress& pf) {
  NetlinkMessage message = startGeneric(family, flags, command);
  requireRoom(nla_put_string(message.get(), DEVLINK_ATTR_BUS_NAME, "pci") == 0);
  requireRoom(nla_put_string(message.get(), DEVLINK_ATTR_DEV_NAME, toString(pf).c_str()) == 0);
  return message;
}

nlattr* attributeOf(nlmsghdr* header, int type) { return nlmsg_find_attr(header, headBytes, type); }

bool isText(const nlattr* attribute, const std::string& expected) {
  return attribute != nullptr && nla_len(attribute) == static_cast<int>(expected.size() + 1) &&
         std::memcmp(nla_data(attribute), expected.c_str(), expected.size() + 1) == 0;
}

}  // namespace

std::string devlinkFamilyQuery() {
  const auto message = startGeneric(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
  requireRoom(nla_put_string(message.get(), CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME) == 0);
  return bytesOf(message);
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

std::string eswitchQuery(std::uint16_t family, const PciAddress& pf) {
  return bytesOf(startDevlink(family, 0, DEVLINK_CMD_ESWITCH_GET, pf));
}

std::string eswitchChange(std::uint16_t family, const PciAddress& pf, EswitchMode mode) {
  const auto message = startDevlink(family, NLM_F_ACK, DEVLINK_CMD_ESWITCH_SET, pf);
  const std::uint16_t value =
      mode == EswitchMode::switchdev ? DEVLINK_ESWITCH_MODE_SWITCHDEV : DEVLINK_ESWITCH_MODE_LEGACY;
  requireRoom(nla_put_u16(message.get(), DEVLINK_ATTR_ESWITCH_MODE, value) == 0);
  return bytesOf(message);
}

std::optional<EswitchMode> parseEswitchReply(std::string_view bytes, std::uint16_t family,
                                             const PciAddress& pf) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(genlmsghdr));
  if (header == nullptr || header->nlmsg_type != family ||
      !isText(attributeOf(header, DEVLINK_ATTR_DEV_NAME), toString(pf))) {
    return std::nullopt;
  }
  const auto mode = numberOf<std::uint16_t>(attributeOf(header, DEVLINK_ATTR_ESWITCH_MODE));
  if (mode == DEVLINK_ESWITCH_MODE_LEGACY) {
    return EswitchMode::legacy;
  }
  return mode == DEVLINK_ESWITCH_MODE_SWITCHDEV ? std::optional(EswitchMode::switchdev)
                                                : std::nullopt;
}

}  // namespace vfpass::host
