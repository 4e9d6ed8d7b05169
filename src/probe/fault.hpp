#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ring.hpp"

namespace vfpass::probe {

class Memory;

/// What goes wrong on purpose, to show that it would be found.
enum class Fault { none, flip, lost, stale, misplaced, truncate, duplicate };

/// A fault and the message that it hits.
struct Injection {
  Fault fault = Fault::none;
  std::uint64_t message = 0;
};

/// One transfer to post: from a slot of the source to a slot of the destination.
struct Transfer {
  std::uint64_t sourceSlot = 0;
  std::uint64_t destinationSlot = 0;
  std::uint64_t bytes = 0;
};

/// nullopt for what is no fault's name.
std::optional<Fault> parseFault(std::string_view name);
std::string faultName(Fault fault);

/// What is posted for one message: the initiator's part of a fault. A misplaced or duplicated
/// message goes to the slot before its own (in a cycle's first slot: the one behind), where it
/// overwrites what came in order; RC keeps the order of writes, and of reads.
std::vector<Transfer> transfersFor(const Ring& ring, std::uint64_t message,
                                   const Injection& injection);

/// The source owner's part of a fault, after it filled `range`: turns one bit over, or puts back
/// what the slot held one cycle before.
void spoilSource(Memory& memory, const Ring& ring, std::uint64_t seed, const MessageRange& range,
                 const Injection& injection);

}  // namespace vfpass::probe
