#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "gpu/cuda_driver.hpp"
#include "rdma/endpoint.hpp"
#include "transfer/message_check.hpp"
#include "transfer/message_memory.hpp"
#include "transfer/transfer_settings.hpp"

namespace vfpass::probe {

/// What the memory's owner on one side has found, and how long its work took, over all cycles.
struct OwnerWork {
  CheckResult result;
  double prepareSeconds = 0;
  double checkSeconds = 0;
};

/// Counts, described corruptions, and durations.
nlohmann::json toJson(const OwnerWork& work);

/// The initiator posts; the target's processor takes no part in the transfer, except for sends.
enum class Role { initiator, target };

/// Resources that the two roles of a process share.
struct Resources {
  std::shared_ptr<const VerbsLibrary> verbs;
  PortChoice port;
  GpuChoice gpu = 0;      ///< for runs with GPU memory
  std::string ipAddress;  ///< own one for rdma_cm, instead of those of the port's interfaces
};

/// One end of one measurement: queue pair, memory, and the rings in it.
class Side {
 public:
  Side(Role role, const Settings& settings, const Resources& resources);

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] const Ring& source() const { return source_; }
  [[nodiscard]] const Ring& destination() const { return destination_; }
  [[nodiscard]] const ConnectionInfo& peer() const { return peer_; }
  /// Address of a slot of one of the rings.
  [[nodiscard]] std::uint64_t addressOf(const Ring& ring, std::uint64_t slot) const {
    return memory_->address() + ring.startOf(slot);
  }

  [[nodiscard]] ConnectionInfo describe() const;
  void connect(const ConnectionInfo& peer);
  /// Uses the peer's memory. For a queue pair that rdma_cm has connected.
  void usePeer(const ConnectionInfo& peer) { peer_ = peer; }

  /// Fills what this side sends and poisons what it receives. Does nothing if checks are off.
  void prepare(const MessageRange& range);
  /// Checks what this side received. Does nothing if it receives nothing or checks are off.
  void check(const MessageRange& range);
  /// The results of all checks so far.
  [[nodiscard]] const OwnerWork& work() const { return work_; }

  /// Kind of memory, registration method, and why preferred methods failed.
  [[nodiscard]] nlohmann::json memoryReport() const;

 private:
  [[nodiscard]] bool hasSource() const;
  [[nodiscard]] bool hasDestination() const;
  /// The two directions of a send test have different bytes, so that an echo is not taken for an
  /// answer.
  [[nodiscard]] std::uint64_t seedOf(Role sender) const;
  /// The seed of what this side receives.
  [[nodiscard]] std::uint64_t receivedSeed() const;
  [[nodiscard]] std::unique_ptr<Memory> allocate(const Resources& resources) const;

  Role role_;
  Settings settings_;
  Ring source_;
  Ring destination_;
  bool onGpu_;
  std::unique_ptr<Memory> memory_;  // before the endpoint, which unregisters it first
  Endpoint endpoint_;
  const Registration* registration_ = nullptr;
  ConnectionInfo peer_;
  OwnerWork work_;
};

}  // namespace vfpass::probe
