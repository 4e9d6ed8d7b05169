#pragma once

#include <infiniband/verbs.h>

#include "library.hpp"

// Macros in front of the functions of the same names; the functions are what a library exports.
#undef ibv_reg_mr
#undef ibv_query_port

namespace vfpass::probe {

/// libibverbs, opened while running. What verbs.h does inline (posting, polling) goes through the
/// opened device's own operations and needs no symbol. Not copied or moved: deleters point into it.
class VerbsLibrary {
 public:
  /// Throws Error with the loader's words when rdma-core is missing.
  VerbsLibrary();
  VerbsLibrary(const VerbsLibrary&) = delete;
  VerbsLibrary& operator=(const VerbsLibrary&) = delete;

  decltype(&::ibv_get_device_list) getDeviceList = nullptr;
  decltype(&::ibv_free_device_list) freeDeviceList = nullptr;
  decltype(&::ibv_get_device_name) getDeviceName = nullptr;
  decltype(&::ibv_open_device) openDevice = nullptr;
  decltype(&::ibv_close_device) closeDevice = nullptr;
  decltype(&::ibv_query_device) queryDevice = nullptr;
  decltype(&::ibv_query_port) queryPort = nullptr;
  decltype(&::ibv_query_gid) queryGid = nullptr;
  decltype(&::ibv_alloc_pd) allocatePd = nullptr;
  decltype(&::ibv_dealloc_pd) freePd = nullptr;
  decltype(&::ibv_create_cq) createCq = nullptr;
  decltype(&::ibv_destroy_cq) destroyCq = nullptr;
  decltype(&::ibv_create_qp) createQp = nullptr;
  decltype(&::ibv_modify_qp) modifyQp = nullptr;
  decltype(&::ibv_destroy_qp) destroyQp = nullptr;
  decltype(&::ibv_reg_mr) registerMemory = nullptr;
  decltype(&::ibv_dereg_mr) unregisterMemory = nullptr;
  decltype(&::ibv_wc_status_str) completionWords = nullptr;
  /// nullptr before rdma-core 29: relaxed ordering is then not to be had.
  decltype(&::ibv_reg_mr_iova2) registerMemoryWithOptions = nullptr;
  /// nullptr before rdma-core 34.
  decltype(&::ibv_reg_dmabuf_mr) registerDmaBuf = nullptr;

 private:
  Library library_;
};

}  // namespace vfpass::probe
