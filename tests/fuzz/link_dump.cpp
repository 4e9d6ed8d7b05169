// Dumps of links and addresses of a network namespace, which a user of the host can own.
// covers: src/host/netlink/link_dump.cpp src/host/netlink/netlink_message.cpp -linkDumpQuery
// -addressDumpQuery -namespaceIdQuery -parseAddresses -addressIn -findAddress -extendedMessage
// -parseAcknowledgement -namesNoCause -reasonOf -textOf
#include "netlink/link_dump.hpp"

#include <linux/rtnetlink.h>

#include "fuzz/target.hpp"
#include "netlink/netlink_message.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  host::LinkDump all;
  host::LinkDump ofDevices;
  host::AddressDump addresses;
  host::addLinks(input, host::LinkScope::all, all);
  host::addLinks(input, host::LinkScope::ofDevices, ofDevices);
  host::addAddresses(input, addresses);
  require(all.error >= 0 && all.error <= 4095, "the result of a dump is an errno");
  require(all.error == addresses.error && all.interrupted == addresses.interrupted,
          "both readers find the same end");
  require(all.links.size() <= input.size() / NLMSG_SPACE(sizeof(ifinfomsg)),
          "a link has a message of its own");
  require(ofDevices.links.size() <= all.links.size(), "the scope only omits links");
  for (const auto& link : all.links) {
    require(link.index > 0, "the index of a link is positive");
  }
  const auto id = host::parseNamespaceId(input);
  require(!id || *id >= 0, "the ID of a namespace is not negative");
}

}  // namespace vfpass::fuzz
