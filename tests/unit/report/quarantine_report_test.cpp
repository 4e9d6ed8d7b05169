#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::report {
namespace {

const std::vector<QuarantinedDevice> inQuarantine{
    {PciAddress{0, 0x3b, 0, 2}, "its reset failed: EIO\x1b[2J", "2026-11-28T12:00:00Z"}};

TEST(QuarantineReport, NamesDeviceTimeAndReason) {
  std::ostringstream out;
  writeQuarantine(out, inQuarantine, {});
  EXPECT_EQ(out.str(),
            "DEVICE        SINCE                 CARD  REASON\n"
            "0000:3b:00.2  2026-11-28T12:00:00Z  -     its reset failed: EIO\\x1b[2J\n");
}

QuarantinedDevice moved() {
  return {PciAddress{0, 0x3b, 0, 0}, "a reason",        "2026-11-28T12:00:00Z",
          "15b3:1021 one",           "15b3:1021 other", {PciAddress{0, 0xaf, 0, 0}}};
}

TEST(QuarantineReport, SaysWhereTheCardIs) {
  const auto cardOf = [](const QuarantinedDevice& device) {
    std::ostringstream out;
    writeQuarantine(out, {device}, {});
    return out.str();
  };
  EXPECT_THAT(cardOf(moved()), testing::HasSubstr("at 0000:af:00.0, another card is here  a reas"));
  QuarantinedDevice gone = moved();
  gone.found.clear();
  gone.elsewhere.clear();
  EXPECT_THAT(cardOf(gone), testing::HasSubstr("not identified  a reason"));
  gone.found = gone.identity;
  EXPECT_THAT(cardOf(gone), testing::HasSubstr("here  a reason"));
}

TEST(QuarantineReport, SaysThatNoDeviceIsInQuarantine) {
  std::ostringstream out;
  writeQuarantine(out, {}, {});
  EXPECT_EQ(out.str(), "no device is in quarantine\n");
}

TEST(QuarantineReport, JsonIsValid) {
  for (const auto& each :
       {inQuarantine, std::vector<QuarantinedDevice>{moved()}, std::vector<QuarantinedDevice>{}}) {
    std::ostringstream out;
    writeQuarantine(out, each, {.json = true});
    expectValid("quarantine", out.str());
  }
}

HandOver handOver() {
  HandOver each{{}, true};
  each.record.time = "2026-11-28T12:00:00Z";
  each.record.device = PciAddress{0, 0x3b, 0, 2};
  each.record.domainName = "train0";
  each.record.entry = "rail0";
  each.record.reset = ResetResult{"2026-11-28T11:59:00Z", {"flr"}, ""};
  each.record.settings = VfSettings{};
  each.record.notNeutral = {"trust"};
  return each;
}

TEST(HandOverReport, HasALineForEachRecord) {
  std::ostringstream out;
  writeHandOvers(out, {handOver()}, {});
  EXPECT_EQ(out.str(),
            "ENDED                 DEVICE        VM      ENTRY  RESET  ATTRIBUTES          ERRORS  "
            "QUARANTINE  SEAL\n"
            "2026-11-28T12:00:00Z  0000:3b:00.2  train0  rail0  done   not neutral: trust  -       "
            "-           valid\n");
  std::ostringstream again;
  HandOver bad = handOver();
  bad.record.quarantine = "its reset failed: EIO";
  writeHandOvers(again, {bad}, {});
  EXPECT_NE(again.str().find("  yes         valid"), std::string::npos);
}

TEST(HandOverReport, JsonIsValid) {
  HandOver bare;
  std::ostringstream out;
  writeHandOvers(out, {handOver(), bare}, {.json = true});
  expectValid("hand-overs", out.str());
}

}  // namespace
}  // namespace vfpass::report
