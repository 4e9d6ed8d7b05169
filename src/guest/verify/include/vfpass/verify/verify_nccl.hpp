#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {

/// Figure::source of the figures of NCCL's collective operations.
inline constexpr const char* ncclFigures = "vfpass-probe nccl";

/// What `--nccl` adds to the default time limit of a verification.
inline constexpr std::chrono::seconds ncclTimeout{300};

/// What `vfpass verify --nccl` runs.
struct NcclTest {
  /// Bytes of the result, ascending: those of the OKE document's table.
  std::vector<std::uint64_t> sizes = {std::uint64_t{1} << 30U, std::uint64_t{10} << 30U};
  std::vector<Figure> lastRun = {};  ///< of the VM's last verification with NCCL; may be empty
};

/// Runs NCCL's all-reduce and all-gather over the leased GPUs of these guests, one rank for each,
/// and judges data, transport and bandwidth. The probes get NCCL's unique ID through the host; NCCL
/// itself needs an IP network between the guests to meet. The first guest is the verified one;
/// findings about another have `NAME:` before their subject. Adds findings and figures to the
/// report. A guest's failure is a finding, not an exception; the timeouts of the agents bound the
/// run. Uses of the plan: folder, probeTimeout, minimumShare.
void verifyNccl(const std::vector<PairGuest>& guests, const agent::ProbeFile& probe,
                const VerifyPlan& plan, const NcclTest& test, const VerifyWatch& watch,
                VerifyReport& report);

}  // namespace vfpass::verify
