#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge_device.hpp"
#include "judge_gpu_place.hpp"
#include "judge_host.hpp"
#include "judge_transfer.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// Moves data through one lease's VF: writes and reads, with and without relaxed ordering, then
/// latency. Compares the host's counters after each transfer. Adds findings and figures to the
/// report.
class DataPath {
 public:
  /// References must outlive the object.
  DataPath(agent::Agent& agent, const agent::PlacedProbe& probe, const VerifyPlan& plan,
           const VerifyWatch& watch, VerifyReport& report)
      : agent_(agent), probe_(probe), plan_(plan), watch_(watch), report_(report) {}

  /// Tests host memory, or with `gpu` that GPU's memory next to host memory. Stops and returns
  /// false at the first failed check. Throws AgentUnavailable.
  bool tryMemory(const Lease& lease, const RdmaPort& port, const std::optional<NearestGpu>& gpu);

 private:
  bool tryTransfer(const Lease& lease, const RdmaPort& port, const Transfer& transfer, int gpu);
  void tryLatency(const RdmaPort& port, const Transfer& latency, int gpu);
  [[nodiscard]] std::vector<OtherVf> otherVfs(const Lease& lease) const;
  void judgeTrafficOf(const Lease& lease, std::uint64_t claimedBytes,
                      const std::optional<VfTraffic>& before, std::vector<OtherVf> others);
  [[nodiscard]] std::vector<std::string> argumentsFor(
      const RdmaPort& port, int gpu, const std::vector<std::string>& options) const;

  agent::Agent& agent_;
  const agent::PlacedProbe& probe_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport& report_;
};

}  // namespace vfpass::verify
