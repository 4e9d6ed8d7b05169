#include "rdma/registration.hpp"

#include <cerrno>
#include <utility>

#include "gpu/gpu_memory.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr int allAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// ENOTSUP and EOPNOTSUPP are one value on Linux.
bool meansNotSupported(int error) { return error == EOPNOTSUPP || error == EPROTONOSUPPORT; }

std::string reason(int error) {
  return (meansNotSupported(error) ? "not supported here: " : "failed: ") + errnoText(error);
}

ibv_mr* registerAddress(const VerbsLibrary& library, ibv_pd& domain, const Memory& memory,
                        bool relaxedOrdering) {
  auto* address = reinterpret_cast<void*>(memory.address());
  if (relaxedOrdering && library.registerMemoryWithOptions != nullptr) {
    return library.registerMemoryWithOptions(&domain, address, memory.bytes(), memory.address(),
                                             allAccess | IBV_ACCESS_RELAXED_ORDERING);
  }
  return library.registerMemory(&domain, address, memory.bytes(), allAccess);
}

/// nullptr, with the reason in `rejected`, on failure.
ibv_mr* registerDmaBuf(const VerbsLibrary& library, ibv_pd& domain, const GpuMemory& memory,
                       bool relaxedOrdering, std::vector<std::string>& rejected) {
  if (library.registerDmaBuf == nullptr) {
    rejected.emplace_back("DMA-BUF: not supported here: rdma-core is older than 34");
    return nullptr;
  }
  try {
    const FileDescriptor exported = memory.buffer().exportDmaBuf();
    const int access =
        allAccess | (relaxedOrdering ? static_cast<int>(IBV_ACCESS_RELAXED_ORDERING) : 0);
    ibv_mr* region = library.registerDmaBuf(&domain, 0, memory.bytes(), memory.address(),
                                            exported.get(), access);
    if (region == nullptr) {
      rejected.push_back("DMA-BUF: the RDMA device: " + reason(errno));
    }
    return region;
  } catch (const Error& error) {
    rejected.push_back(std::string("DMA-BUF: ") + error.what());
    return nullptr;
  }
}

Registration registerGpu(const VerbsLibrary& library, ibv_pd& domain, const GpuMemory& memory,
                         bool relaxedOrdering) {
  std::vector<std::string> rejected;
  ibv_mr* region = registerDmaBuf(library, domain, memory, relaxedOrdering, rejected);
  Method method = Method::dmaBuf;
  if (region == nullptr) {
    method = Method::peerMemory;
    region = registerAddress(library, domain, memory, relaxedOrdering);
  }
  if (region == nullptr) {
    rejected.push_back("peer memory: " + reason(errno));
    throw Error(
        "cannot register GPU memory with the RDMA device: " + join(rejected, "; "),
        "use a driver and kernel with DMA-BUF, or run modprobe nvidia_peermem in the guest");
  }
  return {VerbsPointer<ibv_mr>(region, library.unregisterMemory), method, std::move(rejected)};
}

}  // namespace

std::string methodName(Method method) {
  switch (method) {
    case Method::dmaBuf:
      return "dma-buf";
    case Method::peerMemory:
      return "peer-memory";
    default:
      return "host";
  }
}

Registration registerMemory(const VerbsLibrary& library, ibv_pd& domain, const Memory& memory,
                            bool relaxedOrdering) {
  if (const auto* gpu = dynamic_cast<const GpuMemory*>(&memory)) {
    return registerGpu(library, domain, *gpu, relaxedOrdering);
  }
  return {
      takeOver(registerAddress(library, domain, memory, relaxedOrdering), library.unregisterMemory,
               "cannot register " + std::to_string(memory.bytes()) + " bytes of host memory"),
      Method::host,
      {}};
}

std::string dmaBufUnsupported(const VerbsLibrary& library, ibv_pd& domain) {
  constexpr std::size_t page = 4096;
  constexpr int noDescriptor = -1;
  if (library.registerDmaBuf == nullptr) {
    return "not supported here: rdma-core is older than 34";
  }
  const VerbsPointer<ibv_mr> region(
      library.registerDmaBuf(&domain, 0, page, 0, noDescriptor, IBV_ACCESS_LOCAL_WRITE),
      library.unregisterMemory);
  return region == nullptr && meansNotSupported(errno) ? reason(errno) : "";
}

}  // namespace vfpass::probe
