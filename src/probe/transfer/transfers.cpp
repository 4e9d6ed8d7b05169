#include "transfer/transfers.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "channel/channel.hpp"
#include "rdma/endpoint.hpp"
#include "transfer/timing.hpp"

namespace vfpass::probe {
namespace {

/// A send work request with one buffer. It points into itself, so it is neither copied nor moved.
class WorkRequest {
 public:
  WorkRequest(const Side& side, ibv_wr_opcode operation)
      : endpoint_(side.endpoint()),
        // Inline data is copied by the processor, which must not touch the GPU's memory.
        inlineBytes_(operation == IBV_WR_SEND && !side.settings().initiatorOnGpu &&
                             !side.settings().targetOnGpu
                         ? side.endpoint().inlineBytes()
                         : 0) {
    piece_.lkey = endpoint_.localKey();
    request_.sg_list = &piece_;
    request_.num_sge = 1;
    request_.opcode = operation;
    request_.wr.rdma.rkey = side.peer().key;
  }
  WorkRequest(const WorkRequest&) = delete;
  WorkRequest& operator=(const WorkRequest&) = delete;

  /// Posts one item. Its completion, if requested, returns `number`.
  void post(const WorkItem& item, std::uint64_t number, bool signaled) {
    piece_.addr = item.localAddress;
    piece_.length = item.bytes;
    request_.wr_id = number;
    request_.send_flags =
        (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
        (item.bytes <= inlineBytes_ ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
    if (request_.opcode != IBV_WR_SEND) {
      request_.wr.rdma.remote_addr = item.remoteAddress;
    }
    endpoint_.postSend(request_);
  }

 private:
  const Endpoint& endpoint_;
  std::uint32_t inlineBytes_;
  ibv_sge piece_{};
  ibv_send_wr request_{};
};

/// Polls one of the queues until a completion arrives; checks the deadline only now and then.
template <typename Poll>
std::size_t pollUntilArrival(Poll poll, std::span<ibv_wc> completions, const Deadline& deadline) {
  constexpr unsigned pollsPerCheck = 4096;
  for (unsigned polls = 1;; ++polls) {
    if (const std::size_t arrived = poll(completions); arrived != 0) {
      return arrived;
    }
    if (polls % pollsPerCheck == 0) {
      requireTimeLeft(deadline, "waiting for a transfer's completion");
    }
  }
}

/// Waits for the completion of one send, read or write.
void waitForCompletion(const Side& side, const Deadline& deadline) {
  std::array<ibv_wc, 1> completion{};
  pollUntilArrival([&](std::span<ibv_wc> into) { return side.endpoint().pollSends(into); },
                   completion, deadline);
}

/// Waits for a message of the other side.
void waitForMessage(const Side& side, const Deadline& deadline) {
  std::array<ibv_wc, 1> completion{};
  pollUntilArrival([&](std::span<ibv_wc> into) { return side.endpoint().pollReceives(into); },
                   completion, deadline);
}

/// The times at which messages are posted.
class PostTimes {
 public:
  explicit PostTimes(std::size_t messages) { posts_.reserve(messages + 1); }

  void mark() { posts_.push_back(clock_.now()); }

  /// Seconds from each post to the next.
  [[nodiscard]] std::vector<double> intervals() const {
    std::vector<double> seconds;
    seconds.reserve(posts_.size());
    for (std::size_t i = 1; i < posts_.size(); ++i) {
      seconds.push_back(clock_.secondsBetween(posts_[i - 1], posts_[i]));
    }
    return seconds;
  }

 private:
  TickClock clock_;
  std::vector<std::uint64_t> posts_;
};

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
      waitForCompletion(side_, deadline_);
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
  WorkRequest request(side, opcodeOf(side));
  std::array<ibv_wc, 16> completions{};
  const auto poll = [&](std::span<ibv_wc> into) { return side.endpoint().pollSends(into); };
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  const auto begin = std::chrono::steady_clock::now();
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
  WorkRequest request(side, opcodeOf(side));
  PostTimes times(work.size());
  for (const WorkItem& item : work) {
    times.mark();
    request.post(item, 0, true);
    waitForCompletion(side, deadline);
  }
  times.mark();
  return times.intervals();
}

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
  PostTimes times(range.count);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    times.mark();
    sender.send(range.firstMessage + i, i + 1 == range.count);
    waitForMessage(side, deadline);
  }
  times.mark();
  sender.collect();
  std::vector<double> seconds = times.intervals();
  for (double& each : seconds) {
    each /= 2;
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
