#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string mapped = "0000:0000:0000:0000:0000:ffff:0a63:0001";
const std::string global = "2001:0db8:0000:0000:0000:0000:0000:0001";
const std::string linkLocal = "fe80:0000:0000:0000:5054:00ff:feaa:bbcc";

GuestPort portWithGids() {
  GuestPort port;
  port.gidIndex = 3;
  port.gids = {{linkLocal, 0, "IB/RoCE v1", "eth1"}, {linkLocal, 1, "RoCE v2", "eth1"},
               {mapped, 2, "IB/RoCE v1", "eth1"},    {mapped, 3, "RoCE v2", "eth1"},
               {global, 5, "RoCE v2", "eth1"},       {global, 7, "RoCE v2", "eth1.100"}};
  return port;
}

GuestView configured(const Json& index) {
  return readGuestView({{"nccl", {{"found", true}, {"gid_index", index}}}});
}

Finding judgedIndex(const Json& index, const WantedInGuest& wanted = {}) {
  return judgeNcclGidIndex("rail0", portWithGids(), configured(index), wanted).value_or(Finding{});
}

TEST(JudgeNcclGidIndexTest, PassesForRoceV2WithAddress) {
  const Finding found = judgedIndex(3);
  EXPECT_EQ(found.key, "nccl-gid-index");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.seen, "/etc/nccl.conf: index 3 (RoCE v2 ::ffff:10.99.0.1)");
  EXPECT_EQ(judgedIndex(5).outcome, Outcome::passed) << "an IPv6 address of the same interface";
  EXPECT_EQ(judgedIndex(7).outcome, Outcome::passed) << "a VLAN in the guest";
  EXPECT_EQ(judgedIndex(3, {{}, 3U, "10.99.0.1/24"}).outcome, Outcome::passed);
}

TEST(JudgeNcclGidIndexTest, MismatchNamesBothIndices) {
  const std::pair<int, const char*> wrong[] = {
      {0, "not RoCE v2"}, {1, "link-local"}, {2, "not RoCE v2"}, {4, "no GID"}, {70000, "no GID"}};
  for (const auto& [index, reason] : wrong) {
    const Finding found = judgedIndex(index);
    EXPECT_EQ(found.outcome, Outcome::warning) << index;
    EXPECT_THAT(found.seen, HasSubstr("index " + std::to_string(index)));
    EXPECT_THAT(found.seen, HasSubstr(reason));
    EXPECT_THAT(found.expected, HasSubstr("index 3"));
    EXPECT_THAT(found.remedy, HasSubstr("nccl: {gid-index: 3}"));
  }
  EXPECT_THAT(judgedIndex(5, {{}, {}, "10.99.0.1/24"}).seen,
              HasSubstr("not the address of the mapping, 10.99.0.1/24"));
}

TEST(JudgeNcclGidIndexTest, ComparesGuestWithMapping) {
  const Finding differs = judgedIndex(3, {{}, 5U, ""});
  EXPECT_EQ(differs.outcome, Outcome::warning);
  EXPECT_THAT(differs.seen, HasSubstr("the mapping: index 5"));
  EXPECT_THAT(differs.remedy, HasSubstr("guest-setup"));
  const Finding unwritten = judgedIndex(nullptr, {{}, 3U, ""});
  EXPECT_EQ(unwritten.outcome, Outcome::warning);
  EXPECT_THAT(unwritten.seen, HasSubstr("/etc/nccl.conf in the guest does not set it"));
  const Finding bad = judgedIndex(nullptr, {{}, 0U, ""});
  EXPECT_THAT(bad.seen, HasSubstr("the mapping: index 0"));
  EXPECT_THAT(bad.remedy, HasSubstr("gid-index: 3"));
}

TEST(JudgeNcclGidIndexTest, UnknownHasNotPassed) {
  EXPECT_EQ(judgedIndex(nullptr).outcome, Outcome::waived);
  for (const Json& odd : {Json("3"), Json(-3), Json(Json::array())}) {
    EXPECT_EQ(judgedIndex(odd).outcome, Outcome::waived) << odd;
  }
  EXPECT_EQ(judgedIndex(99999999999U).outcome, Outcome::warning);
  EXPECT_FALSE(judgeNcclGidIndex("rail0", portWithGids(), {}, {})) << "an older probe";
  EXPECT_EQ(judgeNcclGidIndex("rail0", portWithGids(), {}, {{}, 3U, ""})->outcome, Outcome::passed);
  EXPECT_EQ(judgeNcclGidIndex("rail0", portWithGids(), {}, {{}, 0U, ""})->outcome,
            Outcome::warning);
  EXPECT_FALSE(judgeNcclGidIndex("rail0", {}, configured(3), {})) << "no GID at all";
}

TEST(JudgeNcclGidIndexTest, WithoutRoceV2AnyIndexIsAsGood) {
  GuestPort old;
  old.gidIndex = 1;
  old.gids = {{linkLocal, 0, "IB/RoCE v1", ""}, {mapped, 1, "IB/RoCE v1", ""}};
  EXPECT_EQ(judgeNcclGidIndex("rail0", old, configured(1), {})->outcome, Outcome::passed);
  EXPECT_EQ(judgeNcclGidIndex("rail0", old, configured(0), {})->outcome, Outcome::warning);
}

}  // namespace
}  // namespace vfpass::verify
