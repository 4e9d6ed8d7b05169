#pragma once

#include <vector>

#include "transfer/side.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

/// Posts a receive for each message of the range, into its slot. Both sides do so before either of
/// them sends.
void postReceives(const Side& side, const MessageRange& range);

/// The initiator's part: sends a message, waits for the answer, sends the next. Returns half of the
/// seconds from each send to the next, as perftest does.
std::vector<double> pingPong(const Side& side, const MessageRange& range, const Deadline& deadline);

/// The target's part: answers each message that arrives with one of its own.
void answerPings(const Side& side, const MessageRange& range, const Deadline& deadline);

}  // namespace vfpass::probe
