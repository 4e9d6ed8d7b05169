// SPDX-License-Identifier: GPL-2.0-or-later
// How ranks in the lab's guests exchange data: they meet at a TCP port of rank 0, whose address is the
// unique ID, and write their data into each other's GPU memory by RDMA, which the card reads and writes
// through a DMA-BUF. With tests/fake/nccl/fake_nccl.cpp it is a stand-in for libnccl, and says so in its log.
// It has what the probe needs and no more: one port for each rank, no channels, no rings.
//
// The file /run/stand-in-nccl in the guest has settings of fake_nccl.cpp, one `NAME=VALUE` a line.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exchange.hpp"

namespace fake_nccl {
namespace {

constexpr int mostRanks = 8;
constexpr std::size_t slotBytes = std::size_t{1} << 20U;
constexpr const char* info = "guest:1:1 [0] NCCL INFO ";

__attribute__((constructor)) void readSettings() {
  std::ifstream file("/run/stand-in-nccl");
  for (std::string line; std::getline(file, line);) {
    if (const auto end = line.find('='); end != std::string::npos) {
      ::setenv(line.substr(0, end).c_str(), line.substr(end + 1).c_str(), 1);
    }
  }
}

/// What the stand-in uses of libcuda, which the probe has loaded.
struct Cuda {
  int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*release)(std::uint64_t) = nullptr;
  int (*handle)(void*, std::uint64_t, std::size_t, int, unsigned long long) = nullptr;

  Cuda() {
    if (void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
      find(library, "cuMemAlloc_v2", allocate);
      find(library, "cuMemFree_v2", release);
      find(library, "cuMemGetHandleForAddressRange", handle);
    }
  }

 private:
  template <typename Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
  }
};

/// The first RDMA device with an IPv4 address for RoCE v2.
struct Device {
  ibv_context* context = nullptr;
  ibv_gid_entry gid = {};

  Device() {
    int count = 0;
    ibv_device** devices = ::ibv_get_device_list(&count);
    for (int i = 0; i < count && context == nullptr; ++i) {
      context = ::ibv_open_device(devices[i]);
      if (context != nullptr && !findGid()) {
        ::ibv_close_device(context);
        context = nullptr;
      }
    }
    if (devices != nullptr) {
      ::ibv_free_device_list(devices);
    }
  }
  ~Device() {
    if (context != nullptr) {
      ::ibv_close_device(context);
    }
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] in_addr address() const {
    in_addr result{};
    std::memcpy(&result, gid.gid.raw + 12, sizeof(result));
    return result;
  }
  [[nodiscard]] std::string addressText() const {
    char text[INET_ADDRSTRLEN] = "";
    const in_addr own = address();
    return ::inet_ntop(AF_INET, &own, text, sizeof(text));
  }

 private:
  bool findGid() {
    constexpr std::array<std::uint8_t, 12> ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    for (unsigned index = 0; index < 16; ++index) {
      if (::ibv_query_gid_ex(context, 1, index, &gid, 0) == 0 &&
          gid.gid_type == IBV_GID_TYPE_ROCE_V2 && std::equal(ipv4.begin(), ipv4.end(), gid.gid.raw)) {
        return true;
      }
    }
    return false;
  }
};

bool sendAll(int socket, const void* data, std::size_t bytes) {
  return ::send(socket, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool receiveAll(int socket, void* data, std::size_t bytes) {
  return ::recv(socket, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

/// What a rank tells the others.
struct Member {
  std::uint32_t rank;
  std::uint32_t key;
  std::uint64_t memory;
  std::array<std::uint32_t, mostRanks> pairs;  ///< number of the queue pair for each other rank
  std::array<std::uint8_t, 16> gid;
};

int listener = -1;  // of rank 0

class Rdma : public Exchange {
 public:
  Rdma(sockaddr_in meeting, int ranks, int rank)
      : meeting_(meeting), ranks_(ranks), rank_(rank), bytes_(slotBytes * static_cast<std::size_t>(ranks)) {}

  ~Rdma() override {
    for (const int each : sockets_) {
      ::close(each);
    }
    for (ibv_qp* each : pairs_) {
      if (each != nullptr) {
        ::ibv_destroy_qp(each);
      }
    }
    if (region_ != nullptr) {
      ::ibv_dereg_mr(region_);
    }
    if (queue_ != nullptr) {
      ::ibv_destroy_cq(queue_);
    }
    if (domain_ != nullptr) {
      ::ibv_dealloc_pd(domain_);
    }
    if (memory_ != 0) {
      cuda_.release(memory_);
    }
  }
  Rdma(const Rdma&) = delete;
  Rdma& operator=(const Rdma&) = delete;

  // In the context of this rank's GPU.
  bool prepare() {
    if (device_.context == nullptr || cuda_.handle == nullptr || cuda_.allocate(&memory_, bytes_) != 0) {
      return false;
    }
    domain_ = ::ibv_alloc_pd(device_.context);
    queue_ = ::ibv_create_cq(device_.context, mostRanks, nullptr, nullptr, 0);
    return domain_ != nullptr && queue_ != nullptr && registerMemory() && makePairs();
  }

  int join() override {
    if (rank_ == 0) {
      return success;
    }
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockets_.push_back(made);
    const bool connected =
        ::connect(made, reinterpret_cast<const sockaddr*>(&meeting_), sizeof(meeting_)) == 0;
    return connected && sendAll(made, &own_, sizeof(own_)) ? success : remoteError;
  }

  int waitForAll() override {
    std::vector<Member> all(static_cast<std::size_t>(ranks_));
    const std::size_t bytes = all.size() * sizeof(Member);
    if (rank_ != 0) {
      return receiveAll(sockets_[0], all.data(), bytes) ? connectPairs(all) : remoteError;
    }
    all[0] = own_;
    for (int i = 1; i < ranks_; ++i) {
      const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      Member member{};
      if (peer < 0 || !receiveAll(peer, &member, sizeof(member)) ||
          member.rank >= static_cast<std::uint32_t>(ranks_)) {
        return remoteError;
      }
      sockets_.push_back(peer);
      all[member.rank] = member;
    }
    const bool told = std::ranges::all_of(
        sockets_, [&](int each) { return sendAll(each, all.data(), bytes); });
    return told ? connectPairs(all) : remoteError;
  }

  [[nodiscard]] std::size_t mostBytes() const override { return slotBytes; }

  int give(const char* source, std::size_t bytes) override {
    std::memcpy(part(rank_), source, bytes);
    int posted = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) {
        continue;
      }
      if (!write(rank, bytes)) {
        return remoteError;
      }
      ++posted;
    }
    while (posted > 0) {
      ibv_wc done{};
      const int count = ::ibv_poll_cq(queue_, 1, &done);
      if (count < 0 || (count > 0 && done.status != IBV_WC_SUCCESS)) {
        return remoteError;
      }
      posted -= count;
    }
    return success;
  }

  [[nodiscard]] char* part(int rank) const override {
    return reinterpret_cast<char*>(memory_) + slotBytes * static_cast<std::size_t>(rank);
  }

  // Through rank 0, which knows of all ranks by the byte of each.
  int arrive() override {
    const char arrived = 1;
    return rank_ == 0 || sendAll(sockets_[0], &arrived, 1) ? success : remoteError;
  }

  int await() override {
    char byte = 0;
    const auto receives = [&](int each) { return receiveAll(each, &byte, 1); };
    const auto sends = [&](int each) { return sendAll(each, &byte, 1); };
    const bool complete = std::ranges::all_of(sockets_, receives) &&
                          (rank_ != 0 || std::ranges::all_of(sockets_, sends));
    return complete ? success : remoteError;
  }

  [[nodiscard]] std::string log() const override {
    std::string text = std::string(info) + "Stand-in for NCCL in the lab, no NVIDIA software\n" + info +
                       "NET/IB : Using [0]" + ::ibv_get_device_name(device_.context->device) + ":1/RoCE\n" +
                       info + "Using network IB\n";
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != rank_) {
        text += connection(rank_, rank, "send") + connection(rank, rank_, "receive");
      }
    }
    return text;
  }

 private:
  bool registerMemory() {
    int file = -1;
    constexpr int dmaBuf = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (cuda_.handle(&file, memory_, bytes_, dmaBuf, 0) != 0) {
      return false;
    }
    region_ = ::ibv_reg_dmabuf_mr(domain_, 0, bytes_, memory_, file, access);
    ::close(file);
    return region_ != nullptr;
  }

  bool makePairs() {
    own_ = {static_cast<std::uint32_t>(rank_), region_->rkey, memory_, {}, {}};
    std::copy_n(device_.gid.gid.raw, own_.gid.size(), own_.gid.begin());
    for (int rank = 0; rank < ranks_; ++rank) {
      ibv_qp_init_attr wanted{};
      wanted.send_cq = wanted.recv_cq = queue_;
      wanted.cap = {4, 1, 1, 1, 0};
      wanted.qp_type = IBV_QPT_RC;
      ibv_qp* made = ::ibv_create_qp(domain_, &wanted);
      if (made == nullptr) {
        return false;
      }
      pairs_.push_back(made);
      own_.pairs[static_cast<std::size_t>(rank)] = made->qp_num;
    }
    return true;
  }

  int connectPairs(const std::vector<Member>& all) {
    all_ = all;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != rank_ && !connectPair(rank)) {
        return remoteError;
      }
    }
    return success;
  }

  bool connectPair(int rank) {
    const Member& peer = all_[static_cast<std::size_t>(rank)];
    ibv_qp* pair = pairs_[static_cast<std::size_t>(rank)];
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    to.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (::ibv_modify_qp(pair, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
      return false;
    }
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = IBV_MTU_1024;
    to.dest_qp_num = peer.pairs[static_cast<std::size_t>(rank_)];
    to.min_rnr_timer = 12;
    to.ah_attr.is_global = 1;
    to.ah_attr.port_num = 1;
    std::copy(peer.gid.begin(), peer.gid.end(), to.ah_attr.grh.dgid.raw);
    to.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_.gid.gid_index);
    to.ah_attr.grh.hop_limit = 64;
    if (::ibv_modify_qp(pair, &to, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
      return false;
    }
    to.qp_state = IBV_QPS_RTS;
    to.timeout = 14;
    to.retry_cnt = to.rnr_retry = 7;
    return ::ibv_modify_qp(pair, &to, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
  }

  // Into this rank's part of the other's memory.
  bool write(int rank, std::size_t bytes) {
    const Member& peer = all_[static_cast<std::size_t>(rank)];
    const std::size_t offset = slotBytes * static_cast<std::size_t>(rank_);
    ibv_sge source{memory_ + offset, static_cast<std::uint32_t>(bytes), region_->lkey};
    ibv_send_wr request{};
    request.sg_list = &source;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = peer.memory + offset;
    request.wr.rdma.rkey = peer.key;
    ibv_send_wr* bad = nullptr;
    return ::ibv_post_send(pairs_[static_cast<std::size_t>(rank)], &request, &bad) == 0;
  }

  static std::string connection(int from, int to, const char* direction) {
    return std::string(info) + "Channel 00/0 : " + std::to_string(from) + "[0] -> " + std::to_string(to) + "[0] [" +
           direction + "] via NET/IB/0/GDRDMA\n";
  }

  sockaddr_in meeting_;
  int ranks_;
  int rank_;
  std::size_t bytes_;
  Cuda cuda_ = {};
  Device device_ = {};
  std::uint64_t memory_ = 0;
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<ibv_qp*> pairs_ = {};
  std::vector<int> sockets_ = {};  ///< of rank 0: to all others; of another: to rank 0
  Member own_ = {};
  std::vector<Member> all_ = {};
};

}  // namespace

Meeting newMeeting() {
  const Device device;
  if (device.context == nullptr) {
    return {};
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = device.address();
  socklen_t length = sizeof(address);
  listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener, mostRanks) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return {};
  }
  char interface[IF_NAMESIZE] = "";
  ::if_indextoname(device.gid.ndev_ifindex, interface);
  return {device.addressText() + " " + std::to_string(ntohs(address.sin_port)),
          std::string(info) + "Bootstrap : Using " + interface + ":" + device.addressText() + "<0>\n"};
}

std::unique_ptr<Exchange> newExchange(const std::string& id, int ranks, int rank) {
  const auto space = id.find(' ');
  sockaddr_in meeting{};
  meeting.sin_family = AF_INET;
  if (ranks > mostRanks || space == std::string::npos ||
      ::inet_pton(AF_INET, id.substr(0, space).c_str(), &meeting.sin_addr) != 1) {
    return nullptr;
  }
  meeting.sin_port = htons(static_cast<std::uint16_t>(std::atoi(id.c_str() + space)));
  auto made = std::make_unique<Rdma>(meeting, ranks, rank);
  return made->prepare() ? std::move(made) : nullptr;
}

}  // namespace fake_nccl
