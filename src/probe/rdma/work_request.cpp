#include "rdma/work_request.hpp"

namespace vfpass::probe {

WorkRequest::WorkRequest(const Side& side, ibv_wr_opcode operation)
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

void WorkRequest::post(const WorkItem& item, std::uint64_t number, bool signaled) {
  piece_.addr = item.localAddress;
  piece_.length = item.bytes;
  request_.wr_id = number;
  request_.send_flags = (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
                        (item.bytes <= inlineBytes_ ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
  if (request_.opcode != IBV_WR_SEND) {
    request_.wr.rdma.remote_addr = item.remoteAddress;
  }
  endpoint_.postSend(request_);
}

}  // namespace vfpass::probe
