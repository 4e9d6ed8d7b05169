#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "transfer/side.hpp"
#include "transfer/transfer_settings.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

/// One work request, ready to be posted.
struct WorkItem {
  std::uint64_t localAddress = 0;
  std::uint64_t remoteAddress = 0;  ///< unused for sends
  std::uint32_t bytes = 0;
};

/// The work requests to post for these messages, including the faults that the initiator injects.
std::vector<WorkItem> workFor(const Side& side, const MessageRange& range);

/// Posts all items with a full send queue and waits for the last completion. Returns the seconds
/// from the first post to the last completion, as perftest does.
double transferAll(const Side& side, const std::vector<WorkItem>& work, const Deadline& deadline);

/// Does one read after another. Returns the seconds from each post to the next.
std::vector<double> readOneByOne(const Side& side, const std::vector<WorkItem>& work,
                                 const Deadline& deadline);

/// Posts a receive for each message of the range, into its slot. Both sides do so before either of
/// them sends.
void postReceives(const Side& side, const MessageRange& range);

/// The initiator's part: sends a message, waits for the answer, sends the next. Returns half of the
/// seconds from each send to the next, as perftest does.
std::vector<double> pingPong(const Side& side, const MessageRange& range, const Deadline& deadline);

/// The target's part: answers each message that arrives with one of its own.
void answerPings(const Side& side, const MessageRange& range, const Deadline& deadline);

/// The initiator's part of all measurements with the target that `channel` is connected to. The
/// report's `passed` says whether every byte on both sides was correct. Throws Error if a
/// measurement fails, and notifies the target.
nlohmann::json measureAll(Channel& channel, const std::vector<Settings>& runs,
                          const Resources& resources, const std::string& token);

/// The target's part: serves measurements until the initiator ends the session. `maxMemory` limits
/// the memory of one measurement, in bytes. The report lists what this side found; `passed` as
/// above.
nlohmann::json serve(Channel& channel, const Resources& resources, const std::string& token,
                     std::uint64_t maxMemory);

}  // namespace vfpass::probe
