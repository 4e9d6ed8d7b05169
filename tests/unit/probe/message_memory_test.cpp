#include "transfer/message_memory.hpp"

#include <gmock/gmock.h>

#include <array>
#include <vector>

namespace vfpass::probe {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t guard = 32;
constexpr std::byte guardByte{0xee};

/// Writes and compares a pattern of this size at this alignment; the bytes next to it must not
/// change.
void writeAndCompare(std::size_t size, std::size_t alignment) {
  alignas(64) static std::array<std::byte, 16384> area;
  area.fill(guardByte);
  const auto place = std::span(area).subspan(guard + alignment, size);
  const MessagePattern pattern{7, 3};
  writePattern(place, pattern);
  ASSERT_EQ(comparePattern(place, pattern), std::nullopt) << size << " at " << alignment;
  ASSERT_EQ(area.at(guard + alignment - 1), guardByte);
  ASSERT_EQ(area.at(guard + alignment + size), guardByte);
  for (std::size_t offset = 0; offset < size; offset += 1 + size / 7) {
    ASSERT_EQ(place[offset], patternByte(pattern, offset)) << offset << " of " << size;
  }
}

TEST(Pattern, HandlesAnySizeAtAnyAlignment) {
  for (std::size_t alignment = 0; alignment < 16; ++alignment) {
    for (const std::size_t size :
         {1U, 2U, 3U, 7U, 8U, 9U, 15U, 16U, 17U, 4095U, 4096U, 4097U, 9001U}) {
      writeAndCompare(size, alignment);
    }
  }
}

TEST(Pattern, FindsEveryFlippedBitAtItsOffset) {
  for (const std::size_t size : {2U, 9U, 4103U}) {
    Bytes bytes(size);
    writePattern(bytes, {1, 2});
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const auto found = comparePattern(bytes, {1, 2});
      ASSERT_TRUE(found) << bit;
      ASSERT_EQ(found->offset, bit / 8);
      ASSERT_EQ(found->wrongBytes, 1U);
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST(Pattern, PoisonDiffersInEveryByte) {
  for (const std::size_t size : {2U, 5U, 8U, 4101U}) {
    Bytes bytes(size);
    writePoison(bytes, {9, 4});
    const auto found = comparePattern(bytes, {9, 4});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->offset, 0U);
    EXPECT_EQ(found->wrongBytes, size);
  }
}

TEST(Pattern, MessagesDifferInTheirFirstTwoBytes) {
  Bytes first(2);
  writePattern(first, {5, 100});
  for (std::uint64_t other = 0; other < 65536; ++other) {
    if (other != 100) {
      ASSERT_TRUE(comparePattern(first, {5, other})) << other;
    }
  }
}

TEST(Pattern, NeighbouringMessagesDifferInEveryByte) {
  Bytes bytes(4096);
  writePattern(bytes, {5, 512});
  for (std::uint64_t other = 513; other < 768; ++other) {
    const auto found = comparePattern(bytes, {5, other});
    ASSERT_TRUE(found);
    ASSERT_EQ(found->wrongBytes, bytes.size()) << other;
  }
}

TEST(Pattern, DiffersByPositionAndSeed) {
  Bytes bytes(64);
  writePattern(bytes, {5, 1});
  EXPECT_TRUE(comparePattern(std::span(bytes).subspan(8, 8), {5, 1}));
  EXPECT_TRUE(comparePattern(bytes, {6, 1}));
}

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
