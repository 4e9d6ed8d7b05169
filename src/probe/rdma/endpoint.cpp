#include "rdma/endpoint.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rdma/rdma_devices.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
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
  const std::string label = port_.device + " port " + std::to_string(port_.port);
  auto* compatible = reinterpret_cast<_compat_ibv_port_attr*>(&attributes_);
  if (const int error = library_->queryPort(context_.get(), port_.port, compatible)) {
    throwVerbsError("cannot read " + label, error);
  }
  if (attributes_.state != IBV_PORT_ACTIVE) {
    throw Error(label + " is not active",
                "bring the link up with ip link set NETDEV up; check the cable, the switch and the "
                "subnet manager");
  }
  gidIndex_ =
      port_.gidIndex.value_or(readGidChoice(SysfsReader(), port_.device, port_.port).value_or(0));
  if (library_->queryGid(context_.get(), port_.port, gidIndex_, &gid_) != 0) {
    throw Error(label + " has no GID " + std::to_string(gidIndex_),
                "choose an index that vfpass-probe inventory lists");
  }
  ibv_device_attr device{};
  if (library_->queryDevice(context_.get(), &device) == 0) {
    readDepth_ = static_cast<std::uint32_t>(
        std::clamp(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 1, maxReads));
  }
  createQueuePair(sizes);
  toInitialized();
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
  info.localId = attributes_.lid;
  std::memcpy(info.gid.data(), gid_.raw, info.gid.size());
  info.ethernet = attributes_.link_layer == IBV_LINK_LAYER_ETHERNET;
  info.mtu = attributes_.active_mtu;
  info.address = address;
  info.key = registration_->region->rkey;
  return info;
}

void Endpoint::modify(ibv_qp_attr& attributes, int mask, const char* state) {
  if (const int error = library_->modifyQp(queuePair_.get(), &attributes, mask)) {
    throwVerbsError(std::string("cannot set the queue pair to ") + state + " on " + port_.device +
                        " with GID index " + std::to_string(gidIndex_),
                    error);
  }
}

void Endpoint::toInitialized() {
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_INIT;
  wanted.port_num = port_.port;
  wanted.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  modify(wanted, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

void Endpoint::toReadyToReceive(const ConnectionInfo& peer) {
  constexpr std::uint8_t quarterOfAMillisecond = 9;  // minimum RNR timer, code of 0.24 ms
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_RTR;
  wanted.path_mtu = std::min(attributes_.active_mtu, static_cast<ibv_mtu>(peer.mtu));
  wanted.dest_qp_num = peer.queuePair;
  wanted.rq_psn = peer.packetSequence;
  wanted.max_dest_rd_atomic = static_cast<std::uint8_t>(readDepth_);
  wanted.min_rnr_timer = quarterOfAMillisecond;
  wanted.ah_attr.port_num = port_.port;
  wanted.ah_attr.dlid = peer.localId;
  // RoCE has no LIDs and uses the GID as the address. InfiniBand needs no GID within a subnet.
  if (peer.ethernet) {
    wanted.ah_attr.is_global = 1;
    wanted.ah_attr.grh.hop_limit = 64;
    wanted.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gidIndex_);
    std::memcpy(wanted.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  }
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
  if (peer.ethernet != (attributes_.link_layer == IBV_LINK_LAYER_ETHERNET)) {
    throw Error("one side is on Ethernet, the other on InfiniBand",
                "choose ports of the same network on both sides");
  }
  toReadyToReceive(peer);
  toReadyToSend();
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
                  "check GID index, MTU, VLAN and the path between the two ports");
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
