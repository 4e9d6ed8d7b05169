#include "rdma/rdma_cm_library.hpp"

namespace vfpass::probe {

RdmaCmLibrary::RdmaCmLibrary()
    : library_({"librdmacm.so.1"},
               "install librdmacm in the guest (apt-get install librdmacm1, or dnf install "
               "librdmacm)") {
  library_.require(createChannel, "rdma_create_event_channel");
  library_.require(destroyChannel, "rdma_destroy_event_channel");
  library_.require(createId, "rdma_create_id");
  library_.require(destroyId, "rdma_destroy_id");
  library_.require(bindAddress, "rdma_bind_addr");
  library_.require(listen, "rdma_listen");
  library_.require(sourcePort, "rdma_get_src_port");
  library_.require(resolveAddress, "rdma_resolve_addr");
  library_.require(resolveRoute, "rdma_resolve_route");
  library_.require(connect, "rdma_connect");
  library_.require(establish, "rdma_establish");
  library_.require(accept, "rdma_accept");
  library_.require(reject, "rdma_reject");
  library_.require(disconnect, "rdma_disconnect");
  library_.require(queuePairAttributes, "rdma_init_qp_attr");
  library_.require(getEvent, "rdma_get_cm_event");
  library_.require(acknowledgeEvent, "rdma_ack_cm_event");
  library_.require(eventText, "rdma_event_str");
}

}  // namespace vfpass::probe
