#pragma once

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "netlink/link_dump.hpp"

/// Builds rtnetlink messages as sent by the kernel.
namespace vfpass::host::messages {

template <typename Value>
std::string bytes(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string attribute(int type, const std::string& payload) {
  std::string result = bytes(static_cast<std::uint16_t>(payload.size() + NLA_HDRLEN)) +
                       bytes(static_cast<std::uint16_t>(type)) + payload;
  result.resize((result.size() + 3) / 4 * 4);
  return result;
}
/// A value that is in no attribute, or is the whole of one.
inline std::string number(std::uint32_t value) { return bytes(value); }
inline std::string number(int type, int value) { return attribute(type, bytes(value)); }
inline std::string text(int type, const std::string& value) {
  return attribute(type, {value.c_str(), value.size() + 1});
}
inline std::string kind(const std::string& name) {
  return attribute(IFLA_LINKINFO | NLA_F_NESTED, text(IFLA_INFO_KIND, name));
}

inline std::string message(int type, const std::string& payload, int flags = NLM_F_MULTI) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.size());
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_flags = static_cast<std::uint16_t>(flags);
  return bytes(header) + payload;
}

inline std::string link(int index, unsigned flags, std::initializer_list<std::string> attributes,
                        int messageFlags = 0) {
  ifinfomsg information{};
  information.ifi_index = index;
  information.ifi_flags = flags;
  std::string payload = bytes(information);
  for (const std::string& each : attributes) {
    payload += each;
  }
  return message(RTM_NEWLINK, payload, NLM_F_MULTI | messageFlags);
}

inline std::string address(int family, int scope, unsigned interfaceIndex) {
  ifaddrmsg information{};
  information.ifa_family = static_cast<std::uint8_t>(family);
  information.ifa_scope = static_cast<std::uint8_t>(scope);
  information.ifa_index = interfaceIndex;
  return message(RTM_NEWADDR, bytes(information));
}

inline std::string namespaceId(int id) {
  std::string payload = bytes(rtgenmsg{});
  payload.resize(NLMSG_ALIGN(payload.size()));
  return message(RTM_NEWNSID, payload + number(NETNSA_NSID, id), 0);
}

inline LinkDump readLinks(std::string_view dump, LinkScope scope = LinkScope::all) {
  LinkDump found;
  addLinks(dump, scope, found);
  return found;
}
inline AddressDump readAddresses(std::string_view dump) {
  AddressDump found;
  addAddresses(dump, found);
  return found;
}

inline std::string done(int error = 0) { return message(NLMSG_DONE, bytes(error)); }

}  // namespace vfpass::host::messages
