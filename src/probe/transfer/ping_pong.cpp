#include "transfer/ping_pong.hpp"

#include <array>
#include <utility>

#include "rdma/work_request.hpp"
#include "transfer/tick_clock.hpp"

namespace vfpass::probe {
namespace {

/// Sends messages, with completions at intervals and for the last one, so that the send queue never
/// fills up.
class Sender {
 public:
  Sender(const Side& side, const Deadline& deadline)
      : side_(side), deadline_(deadline), request_(side, IBV_WR_SEND) {}

  void send(std::uint64_t message, bool last) {
    // The completion of an earlier send arrived before its answer, so this does not wait.
    collect();
    ++posted_;
    awaited_ = last || posted_ % moderationOf(side_.settings()) == 0;
    request_.post(itemFor(message), posted_, awaited_);
  }

  void collect() {
    if (std::exchange(awaited_, false)) {
      std::array<ibv_wc, 1> completion{};
      pollUntilArrival([&](std::span<ibv_wc> into) { return side_.endpoint().pollSends(into); },
                       completion, deadline_);
    }
  }

 private:
  WorkItem itemFor(std::uint64_t message) const {
    const Ring& ring = side_.source();
    const auto transfers = transfersFor(ring, message, side_.settings().injection);
    return {side_.addressOf(ring, ring.slotOf(message)), 0,
            static_cast<std::uint32_t>(transfers.front().bytes)};
  }

  const Side& side_;
  const Deadline& deadline_;
  WorkRequest request_;
  std::uint64_t posted_ = 0;
  bool awaited_ = false;
};

void waitForMessage(const Side& side, const Deadline& deadline) {
  std::array<ibv_wc, 1> completion{};
  pollUntilArrival([&](std::span<ibv_wc> into) { return side.endpoint().pollReceives(into); },
                   completion, deadline);
}

}  // namespace

void postReceives(const Side& side, const MessageRange& range) {
  ibv_sge piece{};
  piece.lkey = side.endpoint().localKey();
  piece.length = static_cast<std::uint32_t>(side.settings().bytes);
  ibv_recv_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    piece.addr = side.addressOf(side.destination(), range.firstSlot + i);
    side.endpoint().postReceive(request);
  }
}

std::vector<double> pingPong(const Side& side, const MessageRange& range,
                             const Deadline& deadline) {
  Sender sender(side, deadline);
  const TickClock clock;
  std::vector<std::uint64_t> posts;
  posts.reserve(range.count + 1);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    posts.push_back(clock.now());
    sender.send(range.firstMessage + i, i + 1 == range.count);
    waitForMessage(side, deadline);
  }
  posts.push_back(clock.now());
  sender.collect();
  std::vector<double> seconds;
  seconds.reserve(range.count);
  for (std::size_t i = 1; i < posts.size(); ++i) {
    seconds.push_back(clock.secondsBetween(posts[i - 1], posts[i]) / 2);
  }
  return seconds;
}

void answerPings(const Side& side, const MessageRange& range, const Deadline& deadline) {
  Sender sender(side, deadline);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    waitForMessage(side, deadline);
    sender.send(range.firstMessage + i, i + 1 == range.count);
  }
  sender.collect();
}

}  // namespace vfpass::probe
