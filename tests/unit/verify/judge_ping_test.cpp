#include "judge_pair.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfpass::verify {
namespace {

TEST(ReadableGid, ShowsIpv4AsAnAddress) {
  EXPECT_EQ(readableGid("0000:0000:0000:0000:0000:ffff:0a63:0001"), "::ffff:10.99.0.1");
  EXPECT_EQ(readableGid("fe80:0000:0000:0000:5054:00ff:fe12:3456"), "fe80::5054:ff:fe12:3456");
  EXPECT_EQ(readableGid("no GID"), "no GID");
}

TEST(AddressOfGid, IsIpv4ForAMappedAddress) {
  EXPECT_EQ(addressOfGid("0000:0000:0000:0000:0000:ffff:0a63:0002"), "10.99.0.2");
  EXPECT_EQ(addressOfGid("::ffff:192.168.0.1"), "192.168.0.1");
}

TEST(AddressOfGid, IsIpv6Otherwise) {
  EXPECT_EQ(addressOfGid("fe80:0000:0000:0000:5054:00ff:feaa:bbcc"), "fe80::5054:ff:feaa:bbcc");
}

TEST(AddressOfGid, RefusesOtherText) {
  for (const char* text : {"", "$(reboot)", "--count", "10.0.0.1", "0000:0000"}) {
    EXPECT_EQ(addressOfGid(text), std::nullopt) << text;
  }
  EXPECT_EQ(addressOfGid(std::string(1000, 'f')), std::nullopt);
}

TEST(JudgePing, DamagedReportIsAWarning) {
  for (const char* text :
       {"null", "[]", "{}", R"({"passed": true})", R"({"passed": true, "received": -1})",
        R"({"passed": true, "received": "5"})", R"({"error": "unknown command"})"}) {
    const auto finding = judgePing("rail0", "eth1", "10.0.0.2", nlohmann::json::parse(text),
                                   "`vfpass guest-setup train0`");
    EXPECT_EQ(finding.outcome, Outcome::warning) << text;
    EXPECT_NE(finding.seen, "") << text;
    EXPECT_NE(finding.remedy.find("(`vfpass guest-setup train0`)"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace vfpass::verify
