#include "sriov/vf_request.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <algorithm>
#include <new>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

// Upper bound for all attributes of one VF, including headers and nesting.
constexpr std::size_t perVfBytes = 256;
constexpr std::size_t headBytes = 128;

void check(int result) {
  if (result < 0) {
    throw std::bad_alloc();  // the message is too small: `perVfBytes` is wrong
  }
}

template <typename Payload>
void put(nl_msg* message, int type, const Payload& payload) {
  check(nla_put(message, type, sizeof payload, &payload));
}

template <typename Fill>
void nest(nl_msg* message, int type, Fill fill) {
  nlattr* start = nla_nest_start(message, type);
  if (start == nullptr) {
    throw std::bad_alloc();
  }
  fill();
  check(nla_nest_end(message, start));
}

NetlinkMessage startMessage(int type, int flags, int interfaceIndex, std::uint32_t sequence,
                            std::size_t size) {
  NetlinkMessage message(nlmsg_alloc_size(size), nlmsg_free);
  if (!message || nlmsg_put(message.get(), 0, sequence, type, 0, flags) == nullptr) {
    throw std::bad_alloc();
  }
  ifinfomsg interface {};
  interface.ifi_family = AF_UNSPEC;
  interface.ifi_index = interfaceIndex;
  check(nlmsg_append(message.get(), &interface, sizeof interface, NLMSG_ALIGNTO));
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
      startMessage(RTM_GETLINK, NLM_F_REQUEST, interfaceIndex, sequence, headBytes);
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
  const std::size_t room = std::max(limit, headBytes + perVfBytes) - headBytes;
  const std::size_t batch = room / perVfBytes;
  std::vector<std::string> messages;
  for (std::size_t first = 0; first < requests.size(); first += batch) {
    const std::size_t end = std::min(first + batch, requests.size());
    const NetlinkMessage message =
        startMessage(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, interfaceIndex,
                     sequence + static_cast<std::uint32_t>(messages.size()),
                     headBytes + (end - first) * perVfBytes);
    nest(message.get(), IFLA_VFINFO_LIST, [&] {
      for (std::size_t i = first; i < end; ++i) {
        putEntries(message.get(), requests[i]);
      }
    });
    messages.push_back(bytesOf(message));
  }
  return messages;
}

}  // namespace vfpass::host
