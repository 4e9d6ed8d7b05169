#pragma once

#include <cstdint>
#include <vector>

#include "deadline.hpp"
#include "side.hpp"

namespace vfpass::probe {

/// One work request, ready to be posted.
struct WorkItem {
  std::uint64_t localAddress = 0;
  std::uint64_t remoteAddress = 0;  ///< not of a send
  std::uint32_t bytes = 0;
};

/// What is posted for these messages, the initiator's part of a fault included.
std::vector<WorkItem> workFor(const Side& side, const MessageRange& range);

/// Posts all of it with a full send queue, and waits for the last completion. Seconds from the
/// first post to the last completion, as perftest counts them.
double transferAll(const Side& side, const std::vector<WorkItem>& work, const Deadline& deadline);

/// One read after another. Seconds from each post to the next.
std::vector<double> readOneByOne(const Side& side, const std::vector<WorkItem>& work,
                                 const Deadline& deadline);

}  // namespace vfpass::probe
