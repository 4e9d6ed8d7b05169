#include "transfer/transfers.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "rdma/work_request.hpp"
#include "transfer/tick_clock.hpp"

namespace vfpass::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t completionsAtOnce = 16;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

ibv_wr_opcode opcodeOf(const Side& side) {
  return side.settings().operation == Operation::read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
}

WorkItem itemFor(const Side& side, const Transfer& transfer) {
  const bool read = side.settings().operation == Operation::read;
  const Ring& ring = read ? side.destination() : side.source();
  const std::uint64_t local = read ? transfer.destinationSlot : transfer.sourceSlot;
  const std::uint64_t remote = read ? transfer.sourceSlot : transfer.destinationSlot;
  return {side.addressOf(ring, local), side.peer().address + remote * ring.stride,
          static_cast<std::uint32_t>(transfer.bytes)};
}

}  // namespace

std::vector<WorkItem> workFor(const Side& side, const MessageRange& range) {
  std::vector<WorkItem> work;
  work.reserve(range.count + 1);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    for (const Transfer& transfer :
         transfersFor(side.source(), range.firstMessage + i, side.settings().injection)) {
      work.push_back(itemFor(side, transfer));
    }
  }
  return work;
}

double transferAll(const Side& side, const std::vector<WorkItem>& work, const Deadline& deadline) {
  if (work.empty()) {
    return 0;
  }
  const std::uint64_t moderation = moderationOf(side.settings());
  const std::uint64_t depth = side.settings().depth;
  const Endpoint& endpoint = side.endpoint();
  WorkRequest request(side, opcodeOf(side));
  std::array<ibv_wc, completionsAtOnce> completions{};
  const auto poll = [&](std::span<ibv_wc> into) { return endpoint.pollSends(into); };
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  const auto begin = Clock::now();
  while (completed < work.size()) {
    for (; posted < work.size() && posted - completed < depth; ++posted) {
      const bool signaled = (posted + 1) % moderation == 0 || posted + 1 == work.size();
      request.post(work[posted], posted + 1, signaled);
    }
    const std::size_t arrived = pollUntilArrival(poll, completions, deadline);
    completed = completions[arrived - 1].wr_id;  // RC completes in order
  }
  return secondsSince(begin);
}

std::vector<double> readOneByOne(const Side& side, const std::vector<WorkItem>& work,
                                 const Deadline& deadline) {
  const Endpoint& endpoint = side.endpoint();
  WorkRequest request(side, opcodeOf(side));
  std::array<ibv_wc, 1> completion{};
  const auto poll = [&](std::span<ibv_wc> into) { return endpoint.pollSends(into); };
  const TickClock clock;
  std::vector<std::uint64_t> posts;
  posts.reserve(work.size() + 1);
  for (const WorkItem& item : work) {
    posts.push_back(clock.now());
    request.post(item, 0, true);
    pollUntilArrival(poll, completion, deadline);
  }
  posts.push_back(clock.now());
  std::vector<double> seconds;
  seconds.reserve(work.size());
  for (std::size_t i = 1; i < posts.size(); ++i) {
    seconds.push_back(clock.secondsBetween(posts[i - 1], posts[i]));
  }
  return seconds;
}

}  // namespace vfpass::probe
