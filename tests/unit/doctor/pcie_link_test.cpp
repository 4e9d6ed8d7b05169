#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PcieLinks : public testing::Test {
 protected:
  PcieLinks() {
    for (Device& function : host.builder.topology.functions) {
      if (!function.physicalFunction) {
        function.link = function.best = {32000, 16};
      }
    }
  }
  [[nodiscard]] Finding about(const std::string& subject) const {
    for (const Finding& each : host.findings("pcie-link")) {
      if (each.subject == subject) {
        return each;
      }
    }
    return {"none", subject, Outcome::waived, "", "", ""};
  }

  DoctoredHost host;
};

TEST_F(PcieLinks, FullLinksPass) {
  for (const Finding& each : host.findings("pcie-link")) {
    EXPECT_EQ(each.outcome, Outcome::passed) << each.subject << ": " << each.seen;
  }
  EXPECT_EQ(about("mlx5_0").seen, "Gen5 x16");
  EXPECT_EQ(about("0000:04:00.0").seen, "Gen5 x16");
  EXPECT_EQ(about("switch 0000:01:00.0").seen, "Gen5 x16");
}

TEST_F(PcieLinks, DegradedNicFailsWithItsSlot) {
  host.function(host.pf).link = {8000, 4};
  host.file("sys/bus/pci/slots/7/address", "0000:04:00\n");
  host.file("sys/bus/pci/slots/12/address", "0000:03:00\n");
  const Finding found = about("mlx5_0");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_EQ(found.seen, "Gen3 x4 of Gen5 x16");
  EXPECT_THAT(found.remedy, AllOf(HasSubstr("slot 12,"), HasSubstr("lanes to x16")));
  host.function(host.pf).link = {32000, 8};
  EXPECT_EQ(about("mlx5_0").outcome, Outcome::failed) << "only the width";
  host.function(host.pf).link = {16000, 16};
  EXPECT_EQ(about("mlx5_0").outcome, Outcome::failed) << "only the speed";
}

TEST_F(PcieLinks, NarrowGpuFailsButSlowOneIsNotJudgedWhileIdle) {
  host.function(host.gpu).link = {2500, 16};
  EXPECT_EQ(about("0000:04:00.0").outcome, Outcome::notObservable);
  EXPECT_THAT(about("0000:04:00.0").seen, HasSubstr("not judged while it is idle"));
  host.function(host.gpu).link = {2500, 8};
  EXPECT_EQ(about("0000:04:00.0").outcome, Outcome::failed);
}

TEST_F(PcieLinks, FastCardInSlowSlotPassesAndIsNamed) {
  host.function(host.nicPort).best = host.function(host.pf).link = {16000, 16};
  EXPECT_EQ(about("mlx5_0").outcome, Outcome::passed);
  EXPECT_EQ(about("mlx5_0").seen, "Gen4 x16, all that its slot can do; the card can do Gen5 x16");
}

TEST_F(PcieLinks, DegradedUplinkFailsOnce) {
  host.function(host.upstream).link = {32000, 8};
  const Finding found = about("switch 0000:01:00.0");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_THAT(found.remedy, HasSubstr("reseating the switch"));
  EXPECT_EQ(about("mlx5_0").outcome, Outcome::passed);
  EXPECT_EQ(host.findings("pcie-link").size(), 3U);
}

TEST_F(PcieLinks, SyntheticUplinkIsNotDegraded) {
  host.function(host.upstream).best = host.function(host.upstream).link = {5000, 16};
  const Finding found = about("switch 0000:01:00.0");
  EXPECT_EQ(found.outcome, Outcome::notObservable);
  EXPECT_THAT(found.seen, HasSubstr("virtual port"));
}

TEST_F(PcieLinks, UnknownLinkIsNeverPassed) {
  host.function(host.pf).link = {};
  host.function(host.upstream).link = {};
  EXPECT_EQ(about("mlx5_0").outcome, Outcome::notObservable);
  EXPECT_EQ(about("switch 0000:01:00.0").key, "none");
}

TEST_F(PcieLinks, UnusedDeviceIsOnlyAWarning) {
  host.function(host.pf).link = {8000, 4};
  host.requirements.functions = {host.function(host.gpu).address};
  EXPECT_EQ(about("mlx5_0").outcome, Outcome::warning);
  host.function(host.upstream).link = {8000, 4};
  EXPECT_EQ(about("switch 0000:01:00.0").outcome, Outcome::failed) << "the used GPU is below it";
}

TEST_F(PcieLinks, NameOfSlotIsEscaped) {
  host.function(host.pf).link = {8000, 4};
  host.file("sys/bus/pci/slots/\x1b[31m/address", "0000:03:00\n");
  EXPECT_THAT(about("mlx5_0").remedy, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace vfpass::doctor
