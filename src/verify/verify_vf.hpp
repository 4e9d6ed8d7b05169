#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "guest_view.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// What all VFs of one verification have in common. Only read, so threads may share it.
struct GuestUnderTest {
  const VerifyPlan& plan;
  const GuestView& view;
  const agent::PlacedProbe& probe;
  bool gpuUsable = false;       ///< GPU memory is tested, and the guest can use it for RDMA
  std::set<std::string> tools;  ///< perftest and nccl-tests in the guest
  std::map<std::string, std::vector<std::size_t>> gpus;  ///< assignGpus()
};

/// The results for one VF.
struct VfResult {
  VerifyReport report;  ///< findings and figures
  GpuCoverage gpus;     ///< those tested with this VF
  bool ended = true;    ///< false: an error, which is the last finding, stopped it
};

/// One VF's part of a verification.
struct VfPart {
  const Lease& lease;
  std::string position;     ///< for the progress, such as `rail0, 1 of 8`
  std::vector<Lease> idle;  ///< the guest's VFs over which no other part moves data meanwhile
};

/// Verifies one VF: device, RDMA, host memory, then the memory of its GPUs; stops at the first
/// failed check. Threads may verify different VFs at the same time if each has its own agent and
/// `watch` is thread-safe.
VfResult verifyVf(const agent::Agent& agent, const GuestUnderTest& guest, const VerifyWatch& watch,
                  const VfPart& part);

}  // namespace vfpass::verify
