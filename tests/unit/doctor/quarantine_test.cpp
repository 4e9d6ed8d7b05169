#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class Quarantine : public testing::Test {
 protected:
  DoctoredHost host_;
};

TEST_F(Quarantine, IsNotKnownOfACapturedTree) {
  EXPECT_EQ(host_.outcome("quarantine"), Outcome::waived);
}

TEST_F(Quarantine, IsEmpty) {
  host_.requirements.quarantined.emplace();
  EXPECT_EQ(host_.outcome("quarantine"), Outcome::passed);
}

TEST_F(Quarantine, WarnsOfEachDeviceWithTheLogBeforeTheRelease) {
  QuarantinedDevice moved{{0, 0x3b, 0, 2}, "its reset failed\x1b", "2026-11-28T12:00:00Z",
                          "15b3:101d one", "15b3:101d other",      {{0, 0xaf, 0, 2}}};
  host_.requirements.quarantined = {{moved, {{0, 0x4b, 0, 0}, "errors", "2026-11-29T12:00:00Z"}}};
  const auto found = host_.findings("quarantine");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].outcome, Outcome::warning);
  EXPECT_EQ(found[0].subject, "0000:3b:00.2");
  EXPECT_EQ(found[0].seen,
            "since 2026-11-28T12:00:00Z: its reset failed\\x1b; it is at 0000:af:00.2 now; another "
            "card is at this address now");
  EXPECT_EQ(found[0].remedy,
            "look for the cause (`dmesg | grep 0000:3b:00`), remove it, then run `vfpass "
            "quarantine release 0000:3b:00.2`");
  EXPECT_EQ(found[1].seen, "since 2026-11-29T12:00:00Z: errors");
}

}  // namespace
}  // namespace vfpass::doctor
