#pragma once

#include <infiniband/verbs.h>

#include "vfpass/base/shared_library.hpp"

// verbs.h hides these functions, which the library exports, behind macros of the same names.
#undef ibv_reg_mr
#undef ibv_query_port

namespace vfpass::probe {

/// libibverbs, loaded at run time. The inline functions of verbs.h (posting, polling) call the
/// opened device's operations and need no symbol. Neither copied nor moved, because deleters point
/// into it.
class VerbsLibrary {
 public:
  /// Throws Error with the loader's message if rdma-core is missing.
  VerbsLibrary();
  VerbsLibrary(const VerbsLibrary&) = delete;
  VerbsLibrary& operator=(const VerbsLibrary&) = delete;

  decltype(&::ibv_get_device_list) getDeviceList = nullptr;
  decltype(&::ibv_free_device_list) freeDeviceList = nullptr;
  decltype(&::ibv_get_device_name) getDeviceName = nullptr;
  decltype(&::ibv_open_device) openDevice = nullptr;
  decltype(&::ibv_close_device) closeDevice = nullptr;
  decltype(&::ibv_query_device) queryDevice = nullptr;
  /// Fills an ibv_port_attr up to `flags`: the structure that the exported function knows ends
  /// there (libibverbs/verbs.c, _compat_ibv_port_attr).
  decltype(&::ibv_query_port) queryPort = nullptr;
  decltype(&::ibv_query_gid) queryGid = nullptr;
  decltype(&::ibv_query_pkey) queryPartitionKey = nullptr;
  decltype(&::ibv_alloc_pd) allocatePd = nullptr;
  decltype(&::ibv_dealloc_pd) freePd = nullptr;
  decltype(&::ibv_create_cq) createCq = nullptr;
  decltype(&::ibv_destroy_cq) destroyCq = nullptr;
  decltype(&::ibv_create_qp) createQp = nullptr;
  decltype(&::ibv_modify_qp) modifyQp = nullptr;
  decltype(&::ibv_destroy_qp) destroyQp = nullptr;
  decltype(&::ibv_reg_mr) registerMemory = nullptr;
  decltype(&::ibv_dereg_mr) unregisterMemory = nullptr;
  decltype(&::ibv_wc_status_str) completionText = nullptr;
  /// nullptr before rdma-core 29, which has no relaxed ordering.
  decltype(&::ibv_reg_mr_iova2) registerMemoryWithOptions = nullptr;
  /// nullptr before rdma-core 34.
  decltype(&::ibv_reg_dmabuf_mr) registerDmaBuf = nullptr;

 private:
  SharedLibrary library_;
};

}  // namespace vfpass::probe
