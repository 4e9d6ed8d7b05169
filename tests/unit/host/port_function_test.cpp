#include "netlink/devlink.hpp"

#include <gtest/gtest.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <cstdint>
#include <optional>
#include <string>

#include "link_messages.hpp"

namespace vfpass::host {
namespace {

using messages::attribute;
using messages::number;

constexpr std::uint16_t portFamily = 0x19;
constexpr PciAddress portPf{0, 0x3b, 0, 0};
constexpr int portCapabilities = 4;  // DEVLINK_PORT_FN_ATTR_CAPS

std::string portNumber16(std::uint16_t value) { return messages::bytes(value); }

std::string functionWith(std::uint32_t value, std::uint32_t selector) {
  return attribute(DEVLINK_ATTR_PORT_FUNCTION,
                   attribute(portCapabilities, messages::bytes(nla_bitfield32{value, selector})));
}

std::string portMessage(const std::string& device, std::uint32_t port, std::uint16_t vf,
                        const std::string& rest) {
  return messages::message(
      portFamily,
      messages::bytes(genlmsghdr{DEVLINK_CMD_PORT_NEW, DEVLINK_GENL_VERSION, 0}) +
          messages::text(DEVLINK_ATTR_BUS_NAME, "pci") +
          messages::text(DEVLINK_ATTR_DEV_NAME, device) +
          attribute(DEVLINK_ATTR_PORT_INDEX, number(port)) +
          attribute(DEVLINK_ATTR_PORT_FLAVOUR, portNumber16(DEVLINK_PORT_FLAVOUR_PCI_VF)) +
          attribute(DEVLINK_ATTR_PORT_PCI_VF_NUMBER, portNumber16(vf)) + rest);
}

std::optional<PortFunction> portIn(const std::string& dump, unsigned index = 1) {
  const auto ports = parsePortFunctions(dump, portFamily, portPf);
  const auto found = ports.find(index);
  return found == ports.end() ? std::nullopt : std::optional(found->second);
}

TEST(PortFunctionReply, FindsThePortOfTheVf) {
  const std::string dump = portMessage("0000:3b:00.0", 1, 0, functionWith(2, 2)) +
                           portMessage("0000:3b:00.1", 7, 1, functionWith(2, 2)) +
                           portMessage("0000:3b:00.0", 2, 1, functionWith(1, 3));
  EXPECT_EQ(portIn(dump), (PortFunction{2, false}));
  EXPECT_EQ(portIn(dump, 0), (PortFunction{1, true}));
  EXPECT_EQ(portIn(dump, 2), std::nullopt);
  EXPECT_TRUE(parsePortFunctions(dump, portFamily + 1, portPf).empty());
}

TEST(PortFunctionReply, TellsWhereTheCapabilityDoesNotExist) {
  EXPECT_EQ(portIn(portMessage("0000:3b:00.0", 2, 1, "")), (PortFunction{2, std::nullopt}));
  EXPECT_EQ(portIn(portMessage("0000:3b:00.0", 2, 1, functionWith(1, 1))),
            (PortFunction{2, std::nullopt}))
      << "RoCE only, as of firmware without migration";
}

TEST(PortFunctionReply, IgnoresPortsOfAnotherHost) {
  EXPECT_EQ(portIn(portMessage("0000:3b:00.0", 2, 1,
                               attribute(DEVLINK_ATTR_PORT_EXTERNAL, std::string(1, '\1')))),
            std::nullopt);
}

TEST(PortFunctionReply, RejectsTruncatedMessages) {
  const std::string whole = portMessage("0000:3b:00.0", 2, 1, functionWith(2, 2));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(portIn(whole.substr(0, length)), std::nullopt) << length;
  }
}

// The kernel's own reader of a request has the same attributes as its replies.
TEST(PortFunctionChange, NamesPortAndCapability) {
  for (const bool migratable : {true, false}) {
    const std::string request = migratableChange(portFamily, portPf, 2, migratable);
    EXPECT_NE(request.find(attribute(DEVLINK_ATTR_PORT_INDEX, number(2))), std::string::npos);
    EXPECT_NE(request.find(attribute(portCapabilities,
                                     messages::bytes(nla_bitfield32{migratable ? 2U : 0U, 2U}))),
              std::string::npos);
  }
}

}  // namespace
}  // namespace vfpass::host
