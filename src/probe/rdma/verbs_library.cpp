#include "rdma/verbs_library.hpp"

namespace vfpass::probe {

VerbsLibrary::VerbsLibrary()
    : library_({"libibverbs.so.1"}, "install rdma-core in the guest (Debian: ibverbs-providers)") {
  library_.require(getDeviceList, "ibv_get_device_list");
  library_.require(freeDeviceList, "ibv_free_device_list");
  library_.require(getDeviceName, "ibv_get_device_name");
  library_.require(openDevice, "ibv_open_device");
  library_.require(closeDevice, "ibv_close_device");
  library_.require(queryDevice, "ibv_query_device");
  library_.require(queryPort, "ibv_query_port");
  library_.require(queryGid, "ibv_query_gid");
  library_.require(queryPartitionKey, "ibv_query_pkey");
  library_.require(allocatePd, "ibv_alloc_pd");
  library_.require(freePd, "ibv_dealloc_pd");
  library_.require(createCq, "ibv_create_cq");
  library_.require(destroyCq, "ibv_destroy_cq");
  library_.require(createQp, "ibv_create_qp");
  library_.require(modifyQp, "ibv_modify_qp");
  library_.require(destroyQp, "ibv_destroy_qp");
  library_.require(registerMemory, "ibv_reg_mr");
  library_.require(unregisterMemory, "ibv_dereg_mr");
  library_.require(completionText, "ibv_wc_status_str");
  library_.find(registerMemoryWithOptions, "ibv_reg_mr_iova2");
  library_.find(registerDmaBuf, "ibv_reg_dmabuf_mr");
}

}  // namespace vfpass::probe
