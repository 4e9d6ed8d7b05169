#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "judge_device.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::guest {

/// One data path that is tried.
struct Transfer {
  std::string subject;
  std::string operation;  ///< `write`, `read`
  std::string memory;     ///< `host`, `gpu`
  std::uint64_t messageBytes = 0;
  std::uint64_t iterations = 0;
  bool relaxedOrdering = false;
  bool besideHost = false;  ///< host memory first, in the same session

  /// Of one run.
  [[nodiscard]] std::uint64_t bytes() const { return messageBytes * iterations; }
};

/// The probe's report on it: were all bytes that were asked for checked, and right? Adds the figure
/// when there is one.
Finding judgeTransfer(const Transfer& transfer, const nlohmann::json& report,
                      std::vector<Figure>& figures);

/// The host's side: has the PF's switch counted, for this VF, what the guest says it sent? Nullopt
/// for counters that the driver does not have.
Finding judgeTraffic(const std::string& subject, std::uint64_t claimedBytes,
                     const std::optional<VfTraffic>& before, const std::optional<VfTraffic>& after);

/// The larger of what was sent and received in between; nullopt where it was not counted.
std::optional<std::uint64_t> movedBytes(const std::optional<VfTraffic>& before,
                                        const std::optional<VfTraffic>& after);

/// The probe's report on its latency runs, each of `transfer`'s size: bytes right, and figures that
/// are some. Adds them.
Finding judgeLatency(const Transfer& transfer, const nlohmann::json& report,
                     std::vector<Figure>& figures);

}  // namespace vfpass::guest
