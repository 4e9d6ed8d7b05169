#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rdma/queue_pair_connection.hpp"
#include "rdma/rdma_core.hpp"

namespace vfpass::probe {

class GpuMemory;
class Memory;

/// How the RDMA device accesses the memory.
enum class Method { host, dmaBuf, peerMemory };

/// Registered memory, the method used, and why the preferred methods failed.
struct Registration {
  VerbsPointer<ibv_mr> region;
  Method method = Method::host;
  std::vector<std::string> rejected;
};

std::string methodName(Method method);

/// Registers memory for local and remote writes and reads. Tries DMA-BUF first for GPU memory, then
/// peer memory (nvidia_peermem). Throws Error with all reasons if both fail. `relaxedOrdering` is a
/// hint: devices without it ignore it, and so does an older rdma-core.
Registration registerMemory(const VerbsLibrary& library, ibv_pd& domain, const Memory& memory,
                            bool relaxedOrdering);

/// Why a device has not registered a DMA-BUF, from the errno of ibv_reg_dmabuf_mr().
std::string dmaBufRefusal(ibv_context& device, int error);

/// Why a device does not support DMA-BUF memory, tested without such memory (as NCCL does); empty
/// if it does.
std::string dmaBufUnsupported(const VerbsLibrary& library, ibv_pd& domain);

/// A port of an RDMA device.
struct PortChoice {
  std::string device;
  std::uint8_t port = 1;
  std::optional<int> gidIndex;  ///< nullopt: recommendedGid
};

/// Sizes of queues, in work requests.
struct QueueSizes {
  std::uint32_t send = 128;
  std::uint32_t receive = 1;
};

/// Fills in the attributes, and their mask, for the state that `attributes` has.
using AttributeSource = std::function<void(ibv_qp_attr& attributes, int& mask)>;

/// One reliable connected queue pair with its completion queues, on one port.
class Endpoint {
 public:
  Endpoint(std::shared_ptr<const VerbsLibrary> library, PortChoice port, const QueueSizes& sizes);

  /// Registers memory, which must outlive the endpoint.
  const Registration& registerMemory(const Memory& memory, bool relaxedOrdering);

  /// What the peer needs to know; `address` is where the slots begin.
  [[nodiscard]] ConnectionInfo describe(std::uint64_t address) const;

  /// Brings the queue pair to ready-to-send towards the peer.
  void connect(const ConnectionInfo& peer);
  /// The same with attributes from elsewhere, that is from rdma_cm.
  void connect(const AttributeSource& source);

  [[nodiscard]] std::uint32_t queuePairNumber() const { return queuePair_->qp_num; }

  /// Largest message that may be sent inline, in bytes.
  [[nodiscard]] std::uint32_t inlineBytes() const { return inlineBytes_; }
  [[nodiscard]] std::uint32_t localKey() const { return registration_->region->lkey; }
  [[nodiscard]] int gidIndex() const { return path_.gidIndex; }
  /// The partition in use, once connected; nullopt on Ethernet, which has the default one only.
  [[nodiscard]] const std::optional<PartitionEntry>& partition() const { return partition_; }

  void postSend(ibv_send_wr& request) const;
  void postReceive(ibv_recv_wr& request) const;
  /// Returns the number of completions stored; throws Error if one of them failed.
  [[nodiscard]] std::size_t pollSends(std::span<ibv_wc> completions) const;
  [[nodiscard]] std::size_t pollReceives(std::span<ibv_wc> completions) const;

 private:
  void readPort();
  void readPartitions();
  void createQueuePair(const QueueSizes& sizes);
  void toInitialized();
  void toReadyToReceive(const ConnectionInfo& peer, const ibv_ah_attr& path);
  void toReadyToSend();
  void notePath(const ibv_qp_attr& attributes, int mask);
  void modify(ibv_qp_attr& attributes, int mask, const char* state);
  [[nodiscard]] std::size_t poll(ibv_cq& queue, std::span<ibv_wc> completions) const;

  std::shared_ptr<const VerbsLibrary> library_;
  PortChoice port_;
  VerbsContext context_;
  VerbsPointer<ibv_pd> domain_;
  VerbsPointer<ibv_cq> sends_;
  VerbsPointer<ibv_cq> receives_;
  VerbsPointer<ibv_qp> queuePair_;
  std::optional<Registration> registration_;
  PathSource path_;
  ibv_gid gid_{};
  PartitionTable partitions_;
  std::optional<PartitionEntry> partition_;
  std::uint32_t inlineBytes_ = 0;
  std::uint32_t readDepth_ = 1;
  std::uint32_t packetSequence_ = 0;
};

}  // namespace vfpass::probe
