#include "transfer/message_check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "transfer/message_memory.hpp"

namespace vfpass::probe {
namespace {

constexpr std::array<std::pair<std::string_view, Fault>, 7> names{{
    {"none", Fault::none},
    {"flip", Fault::flip},
    {"lost", Fault::lost},
    {"stale", Fault::stale},
    {"misplaced", Fault::misplaced},
    {"truncate", Fault::truncate},
    {"duplicate", Fault::duplicate},
}};

/// The slot before a message's own, whose message has already been posted. For the first slot, the
/// next one: the following message repairs the damage there, but the first slot stays empty.
std::uint64_t wrongSlot(const Ring& ring, std::uint64_t slot) {
  return slot > 0 ? slot - 1 : (slot + 1) % ring.slots;
}

}  // namespace

std::optional<Fault> parseFault(std::string_view name) {
  for (const auto& [text, fault] : names) {
    if (text == name) {
      return fault;
    }
  }
  return std::nullopt;
}

std::string faultName(Fault fault) {
  return std::string(names.at(static_cast<std::size_t>(fault)).first);
}

std::vector<Transfer> transfersFor(const Ring& ring, std::uint64_t message,
                                   const Injection& injection) {
  const std::uint64_t slot = ring.slotOf(message);
  const Transfer right{slot, slot, ring.messageBytes};
  if (injection.message != message) {
    return {right};
  }
  switch (injection.fault) {
    case Fault::lost:
      return {};
    case Fault::truncate:
      return {{slot, slot, ring.messageBytes / 2}};
    case Fault::misplaced:
      return {{slot, wrongSlot(ring, slot), ring.messageBytes}};
    case Fault::duplicate:
      return {right, {slot, wrongSlot(ring, slot), ring.messageBytes}};
    default:
      return {right};
  }
}

void flipBit(Memory& memory, std::uint64_t offset, unsigned bit) {
  std::byte byte{};
  memory.read(offset, std::span(&byte, 1));
  byte ^= std::byte{1} << bit;
  memory.write(offset, std::span(&byte, 1));
}

void corruptSource(Memory& memory, const Ring& ring, std::uint64_t seed, const MessageRange& range,
                   const Injection& injection) {
  const bool hit = injection.message >= range.firstMessage &&
                   injection.message - range.firstMessage < range.count;
  if (!hit) {
    return;
  }
  const std::uint64_t slot = range.firstSlot + (injection.message - range.firstMessage);
  if (injection.fault == Fault::flip) {
    flipBit(memory, ring.startOf(slot) + ring.messageBytes / 2, 4);
  }
  if (injection.fault == Fault::stale) {
    memory.fill(ring, seed, {slot, injection.message - ring.slots, 1});
  }
}

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
  constexpr std::array<std::string_view, 7> damages{"flipped",   "lost",      "truncated", "stale",
                                                    "misplaced", "duplicate", "corrupted"};
  return std::string(damages.at(static_cast<std::size_t>(damage)));
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
