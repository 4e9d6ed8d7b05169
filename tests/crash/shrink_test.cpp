// What is left of an order of processes that ends with a violation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/shrink.hpp"

namespace vfpass::crash {
namespace {

const Schedule whole = parseSchedule(
    "vfs 20000 / attach vm0, start vm0, stop vm0 / recover, gc / status "
    "@ 3>1 12!0 20l1 40>2 55e1 70>0 81P0");

bool hasAction(const Schedule& schedule, const Action& action) {
  return std::ranges::any_of(schedule.actors, [&](const Actor& actor) {
    return std::ranges::find(actor, action) != actor.end();
  });
}

bool hasTurn(const Schedule& schedule, Turn turn) {
  return std::ranges::find(schedule.deviations, turn, &Deviation::turn) !=
         schedule.deviations.end();
}

TEST(ShrinkTest, LeavesWhatTheViolationNeeds) {
  const Schedule least = shrink(whole, [](const Schedule& each) {
    return hasAction(each, {"start", "vm0"}) && hasTurn(each, Turn::kill);
  });
  EXPECT_EQ(toText(least), "vfs 20000 / start vm0 /  /  @ 12!0");
}

TEST(ShrinkTest, LeavesDeviationsThatOnlyTogetherAreAViolation) {
  const Schedule least = shrink(whole, [](const Schedule& each) {
    return hasTurn(each, Turn::kill) && hasTurn(each, Turn::power) &&
           hasAction(each, {"attach", "vm0"}) && hasAction(each, {"gc", ""});
  });
  EXPECT_EQ(toText(least), "vfs 20000 / attach vm0 / gc /  @ 12!0 81P0");
}

TEST(ShrinkTest, LeavesNothingIfEveryOrderIsAViolation) {
  EXPECT_EQ(toText(shrink(whole, [](const Schedule&) { return true; })), "vfs 20000 /  /  /  @");
}

TEST(ShrinkTest, KeepsEverythingIfNoSmallerOrderIsAViolation) {
  EXPECT_EQ(toText(shrink(whole, [](const Schedule&) { return false; })), toText(whole));
}

TEST(ShrinkTest, ResultCanBeReplayed) {
  const Schedule least = shrink(whole, [](const Schedule& each) {
    return hasAction(each, {"recover", ""}) && hasTurn(each, Turn::refuse);
  });
  const Schedule replayed = parseSchedule(toText(least));
  EXPECT_EQ(replayed.actors, (std::vector<Actor>{{}, {{"recover", ""}}, {}}));
  EXPECT_EQ(toText(replayed), toText(least));
}

}  // namespace
}  // namespace vfpass::crash
