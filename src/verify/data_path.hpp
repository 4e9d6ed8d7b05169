#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "judge_device.hpp"
#include "judge_host.hpp"
#include "judge_transfer.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// Moves data through one lease's VF: writes and reads, with and without relaxed ordering, then
/// latency. Compares the host's counters after each transfer. Adds findings and figures to the
/// report.
class DataPath {
 public:
  /// `idle`: VFs of the guest whose counters have to stand still meanwhile. References must outlive
  /// the object.
  DataPath(agent::Agent& agent, const agent::PlacedProbe& probe, const VerifyPlan& plan,
           const VerifyWatch& watch, const std::vector<Lease>& idle, VerifyReport& report)
      : agent_(agent), probe_(probe), plan_(plan), watch_(watch), idle_(idle), report_(report) {}

  /// Tests host memory, or with `gpu` that GPU's memory next to host memory. Stops and returns
  /// false at the first failed check. Throws AgentUnavailable.
  bool tryMemory(const Lease& lease, const RdmaPort& port, const std::optional<TestedGpu>& gpu);

  /// Writes and reads between this GPU's memory and host memory, in both directions. One that fails
  /// does not stop the others. Throws AgentUnavailable.
  void tryMixedMemory(const Lease& lease, const RdmaPort& port, const TestedGpu& gpu);

  /// All message sizes in host memory, or in that GPU's. Throws AgentUnavailable.
  void trySizes(const Lease& lease, const RdmaPort& port, const std::optional<TestedGpu>& gpu);

 private:
  bool tryTransfer(const Lease& lease, const RdmaPort& port, const Transfer& transfer);
  void tryLatency(const RdmaPort& port, const Transfer& latency);
  [[nodiscard]] std::vector<OtherVf> otherVfs(const Lease& lease) const;
  void judgeTrafficOf(const Lease& lease, std::uint64_t claimedBytes,
                      const std::optional<VfTraffic>& before, std::vector<OtherVf> others);
  [[nodiscard]] std::vector<std::string> argumentsFor(
      const RdmaPort& port, const Transfer& transfer,
      const std::vector<std::string>& options) const;

  agent::Agent& agent_;
  const agent::PlacedProbe& probe_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  const std::vector<Lease>& idle_;
  VerifyReport& report_;
};

}  // namespace vfpass::verify
