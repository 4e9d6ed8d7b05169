#include "transfer/fault.hpp"

#include <array>
#include <cstddef>
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

}  // namespace vfpass::probe
