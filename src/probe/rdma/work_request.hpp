#pragma once

#include "rdma/endpoint.hpp"
#include "transfer/run_deadline.hpp"
#include "transfer/transfers.hpp"

namespace vfpass::probe {

/// A send work request with one buffer. It points into itself, so it is neither copied nor moved.
class WorkRequest {
 public:
  WorkRequest(const Side& side, ibv_wr_opcode operation);
  WorkRequest(const WorkRequest&) = delete;
  WorkRequest& operator=(const WorkRequest&) = delete;

  /// Posts one item. Its completion, if requested, returns `number`.
  void post(const WorkItem& item, std::uint64_t number, bool signaled);

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

}  // namespace vfpass::probe
