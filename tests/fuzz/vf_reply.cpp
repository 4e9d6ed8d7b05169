// RTM_NEWLINK with the list of VFs. Its 16-bit length wraps, so the kernel itself sends malformed
// lists.
// covers: src/host/sriov/vf_message.cpp -countedStatistics -trafficOf -put -nest -startMessage
// -putMac -putVlan -putGuid -kernelValue -putVf -putEntries -queryWith -linkQuery -trafficQuery
// -linkChanges
#include "sriov/vf_port.hpp"

#include "fuzz/target.hpp"

namespace vfpass::fuzz {
namespace {

constexpr int interfaceIndex = 7;
constexpr unsigned largestIndex = 65535;

void checkSettings(const host::VfTable& table) {
  for (const auto& [index, settings] : table) {
    require(index <= largestIndex, "a VF's index has 16 bits");
    require(!settings.vlan || (settings.vlan->id <= 4095 && settings.vlan->qos <= 7),
            "a VLAN tag has 12 bits of ID and 3 of priority");
  }
}

}  // namespace

void runTarget(std::string_view input) {
  const auto ethernet = host::parseLinkReply(input, interfaceIndex, false);
  const auto infiniband = host::parseLinkReply(input, interfaceIndex, true);
  const auto traffic = host::parseTrafficReply(input, interfaceIndex);
  const auto statistics = host::parseStatisticsReply(input, interfaceIndex);
  require(ethernet.has_value() == infiniband.has_value() &&
              ethernet.has_value() == traffic.has_value() &&
              ethernet.has_value() == statistics.has_value(),
          "all readers agree on the interface");
  if (!ethernet) {
    return;
  }
  require(ethernet->size() == infiniband->size(), "the link layer does not change the VFs");
  require(traffic->size() == statistics->size(), "both readers find the same counters");
  require(traffic->size() <= ethernet->size(), "only VFs have counters");
  checkSettings(*ethernet);
  checkSettings(*infiniband);
}

}  // namespace vfpass::fuzz
