#pragma once

#include <vector>

#include "deadline.hpp"
#include "side.hpp"

namespace vfpass::probe {

/// Posts a receive for each message of the range, into the slot where it belongs. Both sides do so
/// before anybody sends.
void postReceives(const Side& side, const MessageRange& range);

/// The initiator's part: sends a message, waits for the answer, sends the next. Seconds, half of
/// those from each send to the next, as perftest counts them.
std::vector<double> pingPong(const Side& side, const MessageRange& range, const Deadline& deadline);

/// The target's part: answers each message that arrives with its own.
void answerPings(const Side& side, const MessageRange& range, const Deadline& deadline);

}  // namespace vfpass::probe
