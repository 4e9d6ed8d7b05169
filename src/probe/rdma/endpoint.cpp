#include "rdma/endpoint.hpp"

#include <endian.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "gpu/gpu_memory.hpp"
#include "rdma/queue_pair_connection.hpp"
#include "rdma/rdma_devices.hpp"
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

/// False if the device does not say, because its rdma-core is too old.
bool lacksOnDemandPaging(ibv_context& device) {
  const verbs_context* extended = verbs_get_ctx(&device);
  if (extended == nullptr ||
      extended->sz < sizeof *extended - offsetof(verbs_context, query_device_ex) ||
      extended->query_device_ex == nullptr) {
    return false;
  }
  ibv_device_attr_ex attributes{};
  return extended->query_device_ex(&device, nullptr, &attributes, sizeof attributes) == 0 &&
         (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) == 0;
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
      rejected.push_back("DMA-BUF: the RDMA device: " + dmaBufRefusal(*domain.context, errno));
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

// Seen with Linux 6.12.118 and 7.2.12: mlx5_ib_reg_user_mr_dmabuf (drivers/infiniband/hw/mlx5/mr.c)
// calls mlx5r_odp_create_eq, which fails without on-demand paging. Linux 6.1 does not. It is a fix
// of 2026 that stable kernels got, so that no version tells whether a kernel asks, and it asks only
// once it has the DMA-BUF: dmaBufUnsupported() cannot know.
std::string dmaBufRefusal(ibv_context& device, int error) {
  const bool paging = !meansNotSupported(error) || !lacksOnDemandPaging(device);
  return reason(error) +
         (paging ? ""
                 : "; it offers no on-demand paging (ODP), without which mlx5_ib of newer kernels "
                   "registers no DMA-BUF");
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

namespace {

constexpr std::uint32_t wantedInline = 236;  // as perftest for send latency
constexpr int maxReads = 128;                // the limit of rxe; mlx5 has 16

/// 24 random bits, so that packets of an earlier connection do not match.
std::uint32_t randomSequence() {
  std::uint32_t number = 1;
  // Any number works, so that a failure does not matter.
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) < 0) {
    number = 1;
  }
  return number & 0xffffffU;
}

}  // namespace

Endpoint::Endpoint(std::shared_ptr<const VerbsLibrary> library, PortChoice port,
                   const QueueSizes& sizes)
    : library_(std::move(library)),
      port_(std::move(port)),
      context_(openDevice(*library_, port_.device)),
      domain_(takeOver(library_->allocatePd(context_.get()), library_->freePd,
                       "cannot create a protection domain on " + port_.device)),
      sends_(takeOver(
          library_->createCq(context_.get(), static_cast<int>(sizes.send) + 1, nullptr, nullptr, 0),
          library_->destroyCq, "cannot create a completion queue on " + port_.device)),
      receives_(takeOver(library_->createCq(context_.get(), static_cast<int>(sizes.receive) + 1,
                                            nullptr, nullptr, 0),
                         library_->destroyCq,
                         "cannot create a completion queue on " + port_.device)),
      queuePair_(nullptr, library_->destroyQp),
      packetSequence_(randomSequence()) {
  readPort();
  readPartitions();
  ibv_device_attr device{};
  if (library_->queryDevice(context_.get(), &device) == 0) {
    readDepth_ = static_cast<std::uint32_t>(
        std::clamp(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 1, maxReads));
  }
  createQueuePair(sizes);
}

void Endpoint::readPort() {
  const std::string label = port_.device + " port " + std::to_string(port_.port);
  auto* compatible = reinterpret_cast<_compat_ibv_port_attr*>(&path_.attributes);
  if (const int error = library_->queryPort(context_.get(), port_.port, compatible)) {
    throwVerbsError("cannot read " + label, error);
  }
  requireUsablePort(path_.attributes, label);
  path_.port = port_.port;
  path_.gidIndex =
      port_.gidIndex.value_or(readGidChoice(SysfsReader(), port_.device, port_.port).value_or(0));
  if (library_->queryGid(context_.get(), port_.port, path_.gidIndex, &gid_) != 0) {
    throw Error(label + " has no GID " + std::to_string(path_.gidIndex),
                "choose an index that vfpass-probe inventory lists");
  }
}

// RoCE has only the default partition, at index 0.
void Endpoint::readPartitions() {
  if (path_.attributes.link_layer == IBV_LINK_LAYER_ETHERNET) {
    return;
  }
  const auto length = std::min<std::size_t>(path_.attributes.pkey_tbl_len, maxPartitions);
  for (std::size_t index = 0; index < length; ++index) {
    __be16 key = 0;
    const int error =
        library_->queryPartitionKey(context_.get(), port_.port, static_cast<int>(index), &key);
    partitions_.push_back(error == 0 ? be16toh(key) : 0);
  }
}

void Endpoint::createQueuePair(const QueueSizes& sizes) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = sends_.get();
  wanted.recv_cq = receives_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = sizes.send;
  wanted.cap.max_recv_wr = sizes.receive;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = wantedInline;
  ibv_qp* made = library_->createQp(domain_.get(), &wanted);
  if (made == nullptr) {  // not every device sends so much inline
    wanted.cap.max_inline_data = 0;
    made = library_->createQp(domain_.get(), &wanted);
  }
  queuePair_ = takeOver(made, library_->destroyQp,
                        "cannot create a queue pair with " + std::to_string(sizes.send) +
                            " sends on " + port_.device);
  inlineBytes_ = std::min(wanted.cap.max_inline_data, wantedInline);
}

const Registration& Endpoint::registerMemory(const Memory& memory, bool relaxedOrdering) {
  registration_ = probe::registerMemory(*library_, *domain_, memory, relaxedOrdering);
  return *registration_;
}

ConnectionInfo Endpoint::describe(std::uint64_t address) const {
  ConnectionInfo info;
  info.queuePair = queuePair_->qp_num;
  info.packetSequence = packetSequence_;
  info.localId = path_.attributes.lid;
  std::memcpy(info.gid.data(), gid_.raw, info.gid.size());
  info.ethernet = path_.attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  info.globalHeader = requiresGlobalHeader(path_.attributes);
  info.partitions = partitions_;
  info.mtu = path_.attributes.active_mtu;
  info.address = address;
  info.key = registration_->region->rkey;
  return info;
}

void Endpoint::modify(ibv_qp_attr& attributes, int mask, const char* state) {
  if (const int error = library_->modifyQp(queuePair_.get(), &attributes, mask)) {
    throwVerbsError(std::string("cannot set the queue pair to ") + state + " on " + port_.device +
                        " with GID index " + std::to_string(path_.gidIndex),
                    error);
  }
}

void Endpoint::toInitialized() {
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_INIT;
  wanted.port_num = port_.port;
  wanted.pkey_index = partition_ ? partition_->index : std::uint16_t{0};
  wanted.qp_access_flags = allAccess;
  modify(wanted, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

void Endpoint::toReadyToReceive(const ConnectionInfo& peer, const ibv_ah_attr& path) {
  constexpr std::uint8_t quarterOfAMillisecond = 9;  // minimum RNR timer, code of 0.24 ms
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_RTR;
  wanted.path_mtu = std::min(path_.attributes.active_mtu, static_cast<ibv_mtu>(peer.mtu));
  wanted.dest_qp_num = peer.queuePair;
  wanted.rq_psn = peer.packetSequence;
  wanted.max_dest_rd_atomic = static_cast<std::uint8_t>(readDepth_);
  wanted.min_rnr_timer = quarterOfAMillisecond;
  wanted.ah_attr = path;
  modify(wanted,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "RTR");
}

void Endpoint::toReadyToSend() {
  // Retransmit after 1 s. perftest uses 67 ms, which emulated guests exceed when they wait for a
  // processor; then they would only retransmit. A long timeout costs nothing when packets arrive.
  constexpr std::uint8_t timeout = 18;
  constexpr std::uint8_t retries = 7;
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_RTS;
  wanted.timeout = timeout;
  wanted.retry_cnt = retries;
  wanted.rnr_retry = retries;
  wanted.sq_psn = packetSequence_;
  wanted.max_rd_atomic = static_cast<std::uint8_t>(readDepth_);
  modify(wanted,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
}

void Endpoint::connect(const ConnectionInfo& peer) {
  const ibv_ah_attr path = addressVector(path_, peer);
  if (!peer.ethernet) {
    partition_ = choosePartition(partitions_, peer.partitions);
  }
  toInitialized();
  toReadyToReceive(peer, path);
  toReadyToSend();
}

void Endpoint::connect(const AttributeSource& source) {
  constexpr std::array<std::pair<ibv_qp_state, const char*>, 3> states{
      {{IBV_QPS_INIT, "INIT"}, {IBV_QPS_RTR, "RTR"}, {IBV_QPS_RTS, "RTS"}}};
  for (const auto& [state, name] : states) {
    ibv_qp_attr wanted{};
    int mask = 0;
    wanted.qp_state = state;
    source(wanted, mask);
    // The peer may offer more reads than this device has, and rdma_cm does not know which accesses
    // the queue pair needs.
    const auto most = static_cast<std::uint8_t>(readDepth_);
    wanted.max_dest_rd_atomic = std::min(wanted.max_dest_rd_atomic, most);
    wanted.max_rd_atomic = std::min(wanted.max_rd_atomic, most);
    wanted.qp_access_flags = allAccess;
    modify(wanted, mask, name);
    notePath(wanted, mask);
  }
}

// rdma_cm has chosen GID index and partition.
void Endpoint::notePath(const ibv_qp_attr& attributes, int mask) {
  if ((mask & IBV_QP_AV) != 0 && attributes.ah_attr.is_global != 0) {
    path_.gidIndex = attributes.ah_attr.grh.sgid_index;
  }
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && attributes.pkey_index < partitions_.size()) {
    partition_ = PartitionEntry{attributes.pkey_index, partitions_[attributes.pkey_index]};
  }
}

void Endpoint::postSend(ibv_send_wr& request) const {
  ibv_send_wr* refused = nullptr;
  if (const int error = ::ibv_post_send(queuePair_.get(), &request, &refused)) {
    throwVerbsError("cannot post a transfer on " + port_.device, error);
  }
}

void Endpoint::postReceive(ibv_recv_wr& request) const {
  ibv_recv_wr* refused = nullptr;
  if (const int error = ::ibv_post_recv(queuePair_.get(), &request, &refused)) {
    throwVerbsError("cannot post a receive on " + port_.device, error);
  }
}

std::size_t Endpoint::poll(ibv_cq& queue, std::span<ibv_wc> completions) const {
  const int count = ::ibv_poll_cq(&queue, static_cast<int>(completions.size()), completions.data());
  if (count < 0) {
    throw Error("cannot poll completions on " + port_.device, "check the guest's dmesg");
  }
  const auto arrived = completions.first(static_cast<std::size_t>(count));
  for (const ibv_wc& completion : arrived) {
    if (completion.status != IBV_WC_SUCCESS) {
      throw Error("a transfer on " + port_.device +
                      " failed: " + library_->completionText(completion.status),
                  pathRemedy(path_.attributes, partition_ ? hexadecimal(partition_->key) : ""));
    }
  }
  return arrived.size();
}

std::size_t Endpoint::pollSends(std::span<ibv_wc> completions) const {
  return poll(*sends_, completions);
}

std::size_t Endpoint::pollReceives(std::span<ibv_wc> completions) const {
  return poll(*receives_, completions);
}

}  // namespace vfpass::probe
