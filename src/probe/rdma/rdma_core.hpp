#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <memory>
#include <string>

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

/// A verbs object, destroyed by the library's own function. It must not outlive the library or the
/// objects it was created from.
template <typename Object>
using VerbsPointer = std::unique_ptr<Object, int (*)(Object*)>;

using VerbsContext = VerbsPointer<ibv_context>;

/// Opens the RDMA device of this name. Throws Error that lists the available devices.
VerbsContext openDevice(const VerbsLibrary& library, const std::string& name);

/// Throws the Error for a verbs call that failed with this errno value.
[[noreturn]] void throwVerbsError(const std::string& what, int error);

/// Takes ownership of what a verbs function returned; throws Error with errno's text if that is
/// nullptr. `what` names the failed operation and its object.
template <typename Object>
VerbsPointer<Object> takeOver(Object* object, int (*destroy)(Object*), const std::string& what) {
  if (object == nullptr) {
    throwVerbsError(what, errno);
  }
  return VerbsPointer<Object>(object, destroy);
}

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
