#include "vfpass/host/flow_control.hpp"

#include <linux/netlink.h>
#include <net/if.h>

#include "netlink/dcb_message.hpp"
#include "netlink/netlink_exchange.hpp"

namespace vfpass::host {

std::optional<FlowControl> readFlowControl(const std::string& netdev,
                                           std::chrono::milliseconds deadline) {
  const ExchangePurpose purpose{netdev, "reading priority flow control", std::nullopt,
                                static_cast<int>(::if_nametoindex(netdev.c_str()))};
  return parseDcbReply(exchangeNetlink(NETLINK_ROUTE, dcbQuery(netdev), purpose, deadline), netdev);
}

}  // namespace vfpass::host
