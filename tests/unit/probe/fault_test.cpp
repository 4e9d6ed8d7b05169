#include "transfer/message_check.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>

#include "transfer/message_memory.hpp"

namespace vfpass::probe {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t patternSeed = 11;
constexpr std::uint64_t ringSlots = 8;

/// Does the work of a queue pair by copying: transfers a cycle's messages in order.
void transferCycle(HostMemory& from, HostMemory& to, const Ring& ring, const MessageRange& range,
                   const Injection& injection) {
  from.fill(ring, patternSeed, range);
  corruptSource(from, ring, patternSeed, range, injection);
  to.poison(ring, patternSeed, range);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    for (const Transfer& transfer : transfersFor(ring, range.firstMessage + i, injection)) {
      std::vector<std::byte> bytes(transfer.bytes);
      from.read(ring.startOf(transfer.sourceSlot), bytes);
      to.write(ring.startOf(transfer.destinationSlot), bytes);
    }
  }
}

/// Size of a message, and its alignment.
class FaultTest : public testing::TestWithParam<std::tuple<std::uint64_t, std::uint64_t>> {
 protected:
  FaultTest()
      : ring(makeRing(std::get<0>(GetParam()), ringSlots, UINT64_MAX, std::get<1>(GetParam()))),
        source(ring.bytes()),
        destination(ring.bytes()) {}

  /// Runs two correct cycles, then one with the fault in message 21; returns the result of that
  /// check.
  CheckResult inject(Fault fault) {
    const Injection injection{fault, 21};
    for (std::uint64_t cycle = 0; cycle < 2; ++cycle) {
      const MessageRange range{0, cycle * ringSlots, ringSlots};
      transferCycle(source, destination, ring, range, injection);
      EXPECT_EQ(checkMessages(destination, ring, patternSeed, range).wrongMessages, 0U);
    }
    const MessageRange range{0, 2 * ringSlots, ringSlots};
    transferCycle(source, destination, ring, range, injection);
    return checkMessages(destination, ring, patternSeed, range);
  }

  static std::vector<Damage> damages(const CheckResult& result) {
    std::vector<Damage> found;
    std::ranges::transform(result.corruptions, std::back_inserter(found), &Corruption::damage);
    return found;
  }

  Ring ring;
  HostMemory source;
  HostMemory destination;
};

TEST_P(FaultTest, FindsNothingWithoutFault) {
  const CheckResult result = inject(Fault::none);
  EXPECT_EQ(result.wrongMessages, 0U);
  EXPECT_EQ(result.messages, ringSlots);
  EXPECT_EQ(result.bytes, ringSlots * ring.messageBytes);
}

TEST_P(FaultTest, FindsFlippedBit) {
  const CheckResult result = inject(Fault::flip);
  ASSERT_THAT(damages(result), ElementsAre(Damage::flipped));
  EXPECT_EQ(result.corruptions[0].message, 21U);
  EXPECT_EQ(result.corruptions[0].offset, ring.messageBytes / 2);
  EXPECT_EQ(result.corruptions[0].expected ^ result.corruptions[0].seen, 0x10);
}

TEST_P(FaultTest, FindsLostMessage) {
  const CheckResult result = inject(Fault::lost);
  ASSERT_THAT(damages(result), ElementsAre(Damage::lost));
  EXPECT_EQ(result.corruptions[0].slot, 5U);
  EXPECT_EQ(result.wrongBytes, ring.messageBytes);
}

TEST_P(FaultTest, FindsStaleMessage) {
  const CheckResult result = inject(Fault::stale);
  ASSERT_THAT(damages(result), ElementsAre(Damage::stale));
  EXPECT_EQ(result.corruptions[0].foundMessage, 21U - ringSlots);
}

TEST_P(FaultTest, FindsMisplacedMessage) {
  const CheckResult result = inject(Fault::misplaced);
  ASSERT_THAT(damages(result), ElementsAre(Damage::misplaced, Damage::lost));
  EXPECT_EQ(result.corruptions[0].slot, 4U);
  EXPECT_EQ(result.corruptions[0].foundMessage, 21U);
}

TEST_P(FaultTest, FindsTruncatedMessage) {
  const CheckResult result = inject(Fault::truncate);
  ASSERT_THAT(damages(result), ElementsAre(Damage::truncated));
  EXPECT_EQ(result.corruptions[0].offset, ring.messageBytes / 2);
}

TEST_P(FaultTest, FindsDuplicatedMessage) {
  const CheckResult result = inject(Fault::duplicate);
  ASSERT_THAT(damages(result), ElementsAre(Damage::duplicate));
  EXPECT_EQ(result.corruptions[0].foundMessage, 21U);
}

INSTANTIATE_TEST_SUITE_P(SizesAndAlignments, FaultTest,
                         testing::Combine(testing::Values(2, 3, 8, 17, 63, 4096, 65537),
                                          testing::Values(0, 1, 2, 4, 7, 8, 13, 63)));

TEST(Fault, NamesRoundTrip) {
  for (const Fault fault : {Fault::none, Fault::flip, Fault::lost, Fault::stale, Fault::misplaced,
                            Fault::truncate, Fault::duplicate}) {
    EXPECT_EQ(parseFault(faultName(fault)), fault);
  }
  EXPECT_EQ(parseFault("Flip"), std::nullopt);
}

TEST(Verdict, CountsAllWrongMessagesAndDescribesSome) {
  const Ring ring = makeRing(64, 100, UINT64_MAX, 0);
  HostMemory memory(ring.bytes());
  memory.poison(ring, patternSeed, {0, 0, 100});
  const CheckResult result = checkMessages(memory, ring, patternSeed, {0, 0, 100});
  EXPECT_EQ(result.wrongMessages, 100U);
  EXPECT_EQ(result.wrongBytes, 6400U);
  EXPECT_EQ(result.corruptions.size(), CheckResult::maxDescribed);
}

TEST(Verdict, ClassifiesSeveralWrongBitsAsCorrupted) {
  const Ring ring = makeRing(64, 1, UINT64_MAX, 0);
  HostMemory memory(ring.bytes());
  memory.fill(ring, patternSeed, {0, 0, 1});
  std::byte byte{};
  memory.read(20, std::span(&byte, 1));
  byte ^= std::byte{0x11};
  memory.write(20, std::span(&byte, 1));
  const CheckResult result = checkMessages(memory, ring, patternSeed, {0, 0, 1});
  ASSERT_EQ(result.corruptions.size(), 1U);
  EXPECT_EQ(result.corruptions[0].damage, Damage::corrupted);
  EXPECT_EQ(result.corruptions[0].offset, 20U);
}

}  // namespace
}  // namespace vfpass::probe
