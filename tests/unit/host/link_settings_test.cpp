#include "vfpass/host/link_settings.hpp"

#include <gtest/gtest.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>

#include "link_messages.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t devlinkFamily = 0x19;
constexpr PciAddress devlinkPf{0, 0x3b, 0, 0};

using messages::attribute;
using messages::bytes;
using messages::message;
using messages::number;

std::string shortNumber(std::uint16_t value) { return bytes(value); }

std::string linkReply(int index, unsigned flags, std::uint32_t mtu) {
  return messages::link(index, flags,
                        {messages::text(IFLA_IFNAME, "ens1"), attribute(IFLA_MTU, number(mtu))});
}

std::string eswitchReply(const std::string& device, const std::string& mode) {
  return message(devlinkFamily,
                 bytes(genlmsghdr{DEVLINK_CMD_ESWITCH_GET, DEVLINK_GENL_VERSION, 0}) +
                     messages::text(DEVLINK_ATTR_BUS_NAME, "pci") +
                     messages::text(DEVLINK_ATTR_DEV_NAME, device) +
                     attribute(DEVLINK_ATTR_ESWITCH_MODE, mode));
}

TEST(LinkSettingsReply, ReadsMtuAndUpFlag) {
  EXPECT_EQ(parseLinkSettings(linkReply(3, IFF_UP | IFF_RUNNING, 9000), 3),
            (LinkSettings{9000, true}));
  EXPECT_EQ(parseLinkSettings(linkReply(3, IFF_RUNNING, 1500), 3), (LinkSettings{1500, false}));
}

TEST(LinkSettingsReply, RejectsOtherInterface) {
  EXPECT_FALSE(parseLinkSettings(linkReply(4, IFF_UP, 1500), 3));
}

TEST(LinkSettingsReply, RejectsTruncatedMessages) {
  const std::string whole = linkReply(3, IFF_UP, 1500);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parseLinkSettings(whole.substr(0, length), 3)) << length;
  }
}

TEST(LinkSettingsReply, RejectsMissingOrShortMtu) {
  EXPECT_FALSE(parseLinkSettings(messages::link(3, 0, {}), 3));
  EXPECT_FALSE(
      parseLinkSettings(messages::link(3, 0, {attribute(IFLA_MTU, shortNumber(1500))}), 3));
}

TEST(LinkChange, ChangesOnlyUpFlag) {
  for (const bool up : {true, false}) {
    const std::string bytes = upChange(3, up);
    ifinfomsg interface {};
    ASSERT_GE(bytes.size(), sizeof(nlmsghdr) + sizeof interface);
    std::memcpy(&interface, bytes.data() + sizeof(nlmsghdr), sizeof interface);
    EXPECT_EQ(interface.ifi_index, 3);
    EXPECT_EQ(interface.ifi_change, unsigned{IFF_UP});
    EXPECT_EQ(interface.ifi_flags, up ? unsigned{IFF_UP} : 0U);
  }
}

TEST(Devlink, ReadsFamilyFromMatchingMessageOnly) {
  const std::string other = bytes(genlmsghdr{CTRL_CMD_NEWFAMILY, 2, 0}) +
                            messages::text(CTRL_ATTR_FAMILY_NAME, "devlink");
  const std::string payload = other + attribute(CTRL_ATTR_FAMILY_ID, shortNumber(devlinkFamily));
  EXPECT_EQ(parseFamily(message(GENL_ID_CTRL, payload)), devlinkFamily);
  EXPECT_FALSE(parseFamily(message(GENL_ID_CTRL + 1, payload)));
  EXPECT_FALSE(parseFamily(message(GENL_ID_CTRL, other)));
  EXPECT_FALSE(parseFamily(message(NLMSG_ERROR, number(static_cast<std::uint32_t>(-ENOENT)))));
  EXPECT_FALSE(parseFamily(""));
}

TEST(Devlink, ReadsEswitchModeOfMatchingDeviceOnly) {
  const auto parsed = [](const std::string& bytes) {
    return parseEswitchReply(bytes, devlinkFamily, devlinkPf);
  };
  EXPECT_EQ(parsed(eswitchReply("0000:3b:00.0", shortNumber(0))), EswitchMode::legacy);
  EXPECT_EQ(parsed(eswitchReply("0000:3b:00.0", shortNumber(1))), EswitchMode::switchdev);
  EXPECT_FALSE(parsed(eswitchReply("0000:3b:00.1", shortNumber(1))));
  EXPECT_FALSE(parsed(eswitchReply("0000:3b:00.0x", shortNumber(1))));
  EXPECT_FALSE(parsed(eswitchReply("0000:3b:00.0", shortNumber(7)))) << "an unknown mode";
  EXPECT_FALSE(parsed(eswitchReply("0000:3b:00.0", "x"))) << "too short";
  EXPECT_FALSE(parseEswitchReply(eswitchReply("0000:3b:00.0", shortNumber(1)), devlinkFamily + 1,
                                 devlinkPf));
}

TEST(Devlink, RejectsTruncatedMessages) {
  const std::string whole = eswitchReply("0000:3b:00.0", shortNumber(1));
  for (std::size_t length = 0; length + 4 < whole.size(); ++length) {
    EXPECT_FALSE(parseEswitchReply(whole.substr(0, length), devlinkFamily, devlinkPf)) << length;
  }
}

TEST(EswitchMode, ConvertsNamesBothWays) {
  EXPECT_EQ(parseEswitchMode("legacy"), EswitchMode::legacy);
  EXPECT_EQ(parseEswitchMode("switchdev"), EswitchMode::switchdev);
  EXPECT_EQ(toString(EswitchMode::switchdev), "switchdev");
  EXPECT_FALSE(parseEswitchMode("Switchdev"));
  EXPECT_FALSE(parseEswitchMode(""));
}

// The tests below use the running kernel. `lo` has interface index 1 in every network namespace.
TEST(RunningKernel, ReadsMtuOfLoopback) {
  const NetdevHandle lo{1, "lo"};
  EXPECT_GE(readLink(lo, 5s).mtu, 1280U);
}

TEST(RunningKernel, NamesMissingNetdev) {
  try {
    readLink({0x7ffffff0, "ens9"}, 5s);
    FAIL() << "there is no such interface";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ens9"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("ENODEV"), std::string::npos) << error.what();
  }
}

TEST(RunningKernel, ReportsNoEswitchForMissingDevice) {
  EXPECT_FALSE(readEswitchMode({0x7fff, 0xff, 31, 7}, 5s));
  EXPECT_THROW(setEswitchMode({0x7fff, 0xff, 31, 7}, EswitchMode::switchdev, 5s), Error);
}

// Runs `work` as root in a new network namespace, where `lo` is down and unused.
[[noreturn]] void inNewNamespace(const std::function<void()>& work) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0) {
    std::cerr << "no namespaces";
    std::_Exit(0);
  }
  try {
    work();
    std::cerr << "worked";
  } catch (const std::exception& error) {
    std::cerr << error.what();
  }
  std::_Exit(0);
}

TEST(RunningKernel, HasNoDetachedNetdev) {
  EXPECT_FALSE(isNetdevDetached({1, "lo"}, 5s));
  EXPECT_FALSE(isNetdevDetached({0x7ffffff0, "gone"}, 5s)) << "the request itself finds that out";
}

TEST(RunningKernelDeathTest, SetsMtuAndUpFlag) {
  EXPECT_EXIT(inNewNamespace([] {
                const NetdevHandle lo{1, "lo"};
                setMtu(lo, 1400, 5s);
                setUp(lo, true, 5s);
                if (readLink(lo, 5s) != LinkSettings{1400, true}) {
                  throw Error("other values");
                }
                setUp(lo, false, 5s);
                if (readLink(lo, 5s).up) {
                  throw Error("still up");
                }
              }),
              testing::ExitedWithCode(0), "^(worked|no namespaces)$");
}

TEST(RunningKernelDeathTest, ReportsReasonForRefusedMtu) {
  EXPECT_EXIT(inNewNamespace([] {
                setMtu({1, "lo"}, 0x80000000U, 5s);
              }),
              testing::ExitedWithCode(0),
              "lo: setting the MTU to 2147483648 failed: .*EINVAL|^no namespaces$");
}

}  // namespace
}  // namespace vfpass::host
