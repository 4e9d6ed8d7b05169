#pragma once

#include <string>

#include "rdma/ip_address.hpp"
#include "rdma/rdma_cm_library.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

/// An event of rdma_cm, copied so that it could be acknowledged.
struct RdmaCmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;            ///< negative errno, or the reason of a rejection
  rdma_cm_id* id = nullptr;  ///< of a request: a new one, which the receiver has to destroy
  std::string privateData;   ///< of requests, responses and rejections
};

/// The two ends that rdma_cm connects, for messages.
struct RdmaCmPath {
  std::string device;
  IpAddress own;
  IpAddress peer;
};

/// The Error for an event that ends the connection: its name, its status and a remedy for it.
/// `name` is the library's text for the event.
Error errorOf(const RdmaCmEvent& event, const std::string& name, const RdmaCmPath& path);

/// The Error for a call of librdmacm that failed with this errno value. `what` names the operation
/// and its object.
Error rdmaCmCallError(const std::string& what, int error, const std::string& remedy = {});

}  // namespace vfpass::probe
