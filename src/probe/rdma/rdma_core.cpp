#include "rdma/rdma_core.hpp"

#include <cerrno>
#include <span>
#include <vector>

#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

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

namespace {

std::string remedyFor(int error) {
  switch (error) {
    case ENOMEM:
    case EAGAIN:
      return "raise the limit of locked memory (ulimit -l) or use a smaller --memory-limit";
    case EACCES:
    case EPERM:
      return "run as root, or allow access to /dev/infiniband";
    default:
      return "check the guest's dmesg";
  }
}

}  // namespace

void throwVerbsError(const std::string& what, int error) {
  throw Error(what + ": " + errnoText(error), remedyFor(error));
}

VerbsContext openDevice(const VerbsLibrary& library, const std::string& name) {
  int count = 0;
  ibv_device** list = library.getDeviceList(&count);
  if (list == nullptr) {
    throw Error("cannot list RDMA devices: " + errnoText(errno),
                "load ib_uverbs and the device's driver (mlx5_ib) in the guest");
  }
  const ScopeGuard freeList([&] { library.freeDeviceList(list); });
  std::vector<std::string> names;
  for (ibv_device* device : std::span(list, static_cast<std::size_t>(count))) {
    names.emplace_back(library.getDeviceName(device));
    if (names.back() == name) {
      return takeOver(library.openDevice(device), library.closeDevice,
                      "cannot open RDMA device " + name);
    }
  }
  throw Error("no RDMA device " + printable(name) +
                  " (available: " + (names.empty() ? "none" : join(names, ", ")) + ")",
              "use one of those as --device, or load the driver (mlx5_ib) in the guest");
}

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
