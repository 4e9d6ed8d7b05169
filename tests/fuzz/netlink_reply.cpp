// Replies about one PF: link, addresses, flow control, eswitch mode and acknowledgements.
// covers: src/host/netlink/netlink_message.cpp src/host/netlink/link_dump.cpp
// src/host/netlink/flow_control.cpp src/host/netlink/link_settings.cpp -dcbQuery -startGeneric
// -startDevlink -devlinkFamilyQuery -eswitchQuery -eswitchChange -interfaceNumber
// -linkSettingsQuery -mtuChange -upChange -parseLink -linkDumpQuery -addressDumpQuery
// -namespaceIdQuery -addLinks -addAddresses -parseNamespaceId -dumpError -wasInterrupted
// -readFlowControl -throwNoEffect -devlinkFamily -readLink -setMtu -setUp -isNetdevDetached
// -readEswitchMode -eswitchRefusal -setEswitchMode -linkRemedy
#include <arpa/inet.h>

#include <array>

#include "fuzz/target.hpp"
#include "netlink/devlink.hpp"
#include "netlink/link_dump.hpp"
#include "netlink/netlink_message.hpp"
#include "vfpass/host/flow_control.hpp"
#include "vfpass/host/link_settings.hpp"

namespace vfpass::fuzz {
namespace {

constexpr int interfaceIndex = 7;
constexpr std::uint16_t devlinkFamily = 21;
const PciAddress pf{0, 0x3b, 0, 0};

bool isAddress(const std::string& text) {
  const std::string address = text.substr(0, text.find('/'));
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

}  // namespace

void runTarget(std::string_view input) {
  if (const auto acknowledgement = host::parseAcknowledgement(input)) {
    require(acknowledgement->error >= 0 && acknowledgement->error <= 4095,
            "an acknowledgement has an errno");
    requirePrintable(host::reasonOf(*acknowledgement));
  }
  for (const auto& address : host::parseAddresses(input, interfaceIndex)) {
    require(isAddress(address), "an address that was read is one");
  }
  host::parseLinkSettings(input, interfaceIndex);
  host::parseDcbReply(input, "ens1");
  host::parseFamily(input);
  host::parseEswitchReply(input, devlinkFamily, pf);
  host::parsePortFunctions(input, devlinkFamily, pf);
}

}  // namespace vfpass::fuzz
