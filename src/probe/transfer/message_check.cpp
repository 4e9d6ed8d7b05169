#include "transfer/message_check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>

namespace vfpass::probe {
namespace {

using Bytes = std::vector<std::byte>;

bool isPoison(const Bytes& bytes, std::uint64_t from, const MessagePattern& pattern) {
  for (std::uint64_t offset = from; offset < bytes.size(); ++offset) {
    if (bytes[offset] != ~patternByte(pattern, offset)) {
      return false;
    }
  }
  return true;
}

/// Whether the word at the first wrong byte matches `pattern`. Near the end the word begins before
/// that byte, because a single byte would match too easily.
bool matches(const Bytes& bytes, std::uint64_t from, const MessagePattern& pattern) {
  const std::uint64_t begin =
      from + sizeof(Word) <= bytes.size() ? from : from - from % sizeof(Word);
  const std::uint64_t end = std::min<std::uint64_t>(bytes.size(), begin + sizeof(Word));
  for (std::uint64_t offset = begin; offset < end; ++offset) {
    if (bytes[offset] != patternByte(pattern, offset)) {
      return false;
    }
  }
  return true;
}

/// Which message the slot holds instead: one of the same cycle, or the one that it held before.
std::optional<std::uint64_t> foundMessage(const Bytes& bytes, std::uint64_t from, const Ring& ring,
                                          const MessagePattern& expected,
                                          const MessageRange& range) {
  const std::uint64_t before = expected.message - ring.slots;
  if (matches(bytes, from, {expected.seed, before})) {
    return before;
  }
  for (std::uint64_t i = 0; i < range.count; ++i) {
    if (matches(bytes, from, {expected.seed, range.firstMessage + i})) {
      return range.firstMessage + i;
    }
  }
  return std::nullopt;
}

bool inRange(std::uint64_t message, const MessageRange& range) {
  return message - range.firstMessage < range.count;
}

Corruption describe(const Bytes& bytes, const SlotDifference& wrong, const Ring& ring,
                    const MessagePattern& expected, const MessageRange& range,
                    const std::vector<SlotDifference>& all) {
  const std::uint64_t offset = wrong.difference.offset;
  Corruption corruption{Damage::corrupted,
                        expected.message,
                        wrong.slot,
                        offset,
                        wrong.difference.wrongBytes,
                        expected.message,
                        std::to_integer<std::uint8_t>(patternByte(expected, offset)),
                        std::to_integer<std::uint8_t>(bytes.at(offset))};
  if (isPoison(bytes, offset, expected)) {
    corruption.damage = offset == 0 ? Damage::lost : Damage::truncated;
  } else if (const auto owner = foundMessage(bytes, offset, ring, expected, range)) {
    const bool ownSlotWrong = std::ranges::any_of(all, [&](const SlotDifference& other) {
      return inRange(*owner, range) && other.slot == ring.slotOf(*owner);
    });
    corruption.foundMessage = *owner;
    corruption.damage = !inRange(*owner, range) ? Damage::stale
                        : ownSlotWrong          ? Damage::misplaced
                                                : Damage::duplicate;
  } else if (corruption.wrongBytes == 1 &&
             std::popcount(static_cast<unsigned>(corruption.expected ^ corruption.seen)) == 1) {
    corruption.damage = Damage::flipped;
  }
  return corruption;
}

}  // namespace

void CheckResult::add(const CheckResult& other) {
  messages += other.messages;
  bytes += other.bytes;
  wrongMessages += other.wrongMessages;
  wrongBytes += other.wrongBytes;
  for (const Corruption& corruption : other.corruptions) {
    if (corruptions.size() < maxDescribed) {
      corruptions.push_back(corruption);
    }
  }
}

std::string damageName(Damage damage) {
  constexpr std::array<std::string_view, 7> names{"flipped",   "lost",      "truncated", "stale",
                                                  "misplaced", "duplicate", "corrupted"};
  return std::string(names.at(static_cast<std::size_t>(damage)));
}

CheckResult checkMessages(Memory& memory, const Ring& ring, std::uint64_t seed,
                          const MessageRange& range) {
  CheckResult result;
  result.messages = range.count;
  result.bytes = range.count * ring.messageBytes;
  const auto wrong = memory.compare(ring, seed, range);
  result.wrongMessages = wrong.size();
  for (const SlotDifference& slot : wrong) {
    result.wrongBytes += slot.difference.wrongBytes;
    if (result.corruptions.size() == CheckResult::maxDescribed) {
      continue;
    }
    Bytes bytes(ring.messageBytes);
    memory.read(ring.startOf(slot.slot), bytes);
    const MessagePattern expected{seed, range.firstMessage + (slot.slot - range.firstSlot)};
    result.corruptions.push_back(describe(bytes, slot, ring, expected, range, wrong));
  }
  return result;
}

}  // namespace vfpass::probe
