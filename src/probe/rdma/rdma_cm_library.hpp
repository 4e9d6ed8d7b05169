#pragma once

#include <rdma/rdma_cma.h>

#include "vfpass/base/shared_library.hpp"

namespace vfpass::probe {

/// librdmacm, loaded at run time. Neither copied nor moved, because deleters point into it.
class RdmaCmLibrary {
 public:
  /// Throws Error with the loader's message if librdmacm is missing or too old.
  RdmaCmLibrary();
  RdmaCmLibrary(const RdmaCmLibrary&) = delete;
  RdmaCmLibrary& operator=(const RdmaCmLibrary&) = delete;

  decltype(&::rdma_create_event_channel) createChannel = nullptr;
  decltype(&::rdma_destroy_event_channel) destroyChannel = nullptr;
  decltype(&::rdma_create_id) createId = nullptr;
  decltype(&::rdma_destroy_id) destroyId = nullptr;
  decltype(&::rdma_bind_addr) bindAddress = nullptr;
  decltype(&::rdma_listen) listen = nullptr;
  decltype(&::rdma_get_src_port) sourcePort = nullptr;
  decltype(&::rdma_resolve_addr) resolveAddress = nullptr;
  decltype(&::rdma_resolve_route) resolveRoute = nullptr;
  decltype(&::rdma_connect) connect = nullptr;
  decltype(&::rdma_establish) establish = nullptr;  ///< since rdma-core 24
  decltype(&::rdma_accept) accept = nullptr;
  decltype(&::rdma_reject) reject = nullptr;
  decltype(&::rdma_disconnect) disconnect = nullptr;
  decltype(&::rdma_init_qp_attr) queuePairAttributes = nullptr;
  decltype(&::rdma_get_cm_event) getEvent = nullptr;
  decltype(&::rdma_ack_cm_event) acknowledgeEvent = nullptr;
  decltype(&::rdma_event_str) eventText = nullptr;

 private:
  SharedLibrary library_;
};

}  // namespace vfpass::probe
