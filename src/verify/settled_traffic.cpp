#include "settled_traffic.hpp"

#include <chrono>
#include <thread>

#include "judge_transfer.hpp"
#include "vfpass/deadlines.hpp"

namespace vfpass::verify {

Finding settledTraffic(const Lease& lease, std::uint64_t claimedBytes,
                       const std::optional<VfTraffic>& before, const ReadTraffic& read) {
  const auto end = std::chrono::steady_clock::now() + deadlines::countersSettle;
  Finding found = judgeTraffic(lease.entry, claimedBytes, before, read(lease));
  while (found.outcome == Outcome::failed && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    found = judgeTraffic(lease.entry, claimedBytes, before, read(lease));
  }
  return found;
}

}  // namespace vfpass::verify
