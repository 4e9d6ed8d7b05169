#include "transfer/message_memory.hpp"

#include <gmock/gmock.h>

namespace vfpass::probe {
namespace {

TEST(Ring, ObeysLimit) {
  const Ring ring = makeRing(65536, 5000, 1U << 20U, 0);
  EXPECT_EQ(ring.slots, 16U);
  EXPECT_EQ(ring.bytes(), 1U << 20U);
}

TEST(Ring, HasAtLeastOneSlotAndAtMostOneForEachMessage) {
  EXPECT_EQ(makeRing(1U << 24U, 10, 1000, 0).slots, 1U);
  EXPECT_EQ(makeRing(8, 10, 1U << 20U, 0).slots, 10U);
}

TEST(Ring, SlotsDoNotOverlapAtAnyAlignment) {
  const Ring ring = makeRing(65, 4, 1U << 20U, 63);
  EXPECT_EQ(ring.stride, 128U);
  EXPECT_EQ(ring.startOf(1) - ring.startOf(0), 128U);
  EXPECT_LE(ring.startOf(3) + ring.messageBytes, ring.bytes());
}

TEST(Ring, ReusesSlots) {
  const Ring ring = makeRing(64, 4, 1U << 20U, 0);
  EXPECT_EQ(ring.slotOf(6), 2U);
}

}  // namespace
}  // namespace vfpass::probe
