#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/verify/host_side.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// A GPU whose memory is used with a NIC.
struct TestedGpu {
  int index = 0;         ///< CUDA device index
  PciAddress address;    ///< in the guest
  std::string entry;     ///< of its lease; empty: vfpass did not lease it
  std::string distance;  ///< to the NIC in the guest: PIX, PXB, PHB, SYS; empty: unknown
  bool dmaBuf = false;   ///< CUDA exports its memory as DMA-BUF
  std::optional<GpuPath> path = {};  ///< from the NIC's PF on the host; nullopt: unknown
};

/// Orders distances, the nearest first; an unknown one is last.
std::size_t distanceRank(const std::string& distance);

/// `gpu0`, or its address in the guest if it has no lease.
std::string nameOf(const TestedGpu& gpu);

/// The leased GPUs that are tested with each VF, by the VF's entry, as indices of `gpus`. Each VF
/// gets the nearest GPU on the host; among equally near GPUs the one that serves the fewest VFs.
/// Then each GPU without a VF is added to its nearest VF, so that every GPU is tested at least
/// once. Pure.
std::map<std::string, std::vector<std::size_t>> assignGpus(const std::vector<Lease>& vfs,
                                                           const std::vector<LeasedGpu>& gpus);

/// A leased GPU in the guest, or the finding that explains why there is none.
struct FoundGpu {
  std::optional<TestedGpu> gpu;
  Finding problem;  ///< valid if `gpu` is nullopt
};

/// Finds the GPU by its place in the guest's PCI tree: the guest numbers its buses by itself. `vf`
/// is the entry of the VF that it is tested with, and `nic` that VF's address in the guest. Pure.
FoundGpu findLeasedGpu(const GuestView& view, const LeasedGpu& gpu, const std::string& vf,
                       const std::string& nic);

/// The guest's GPU at the place of a leased one, whether or not CUDA has it; null if its place is
/// unknown, or if the guest reports no GPU there. Pure.
const GuestGpu* gpuAtPlaceOf(const GuestView& view, const LeasedGpu& gpu);

/// The guest as far as vfpass gave it devices: of the GPUs the leased ones, of the RDMA devices
/// those of the leased VFs, also if these are down. Without leased GPUs, as with `--gpu`, all GPUs
/// stay; if none of the VFs can be found, all RDMA devices. Pure.
GuestView viewOfLeased(GuestView view, const std::vector<Lease>& vfs,
                       const std::vector<LeasedGpu>& gpus);

/// For a guest without leased GPUs: the nearest one in the guest that CUDA can use, of equally near
/// ones the first in CUDA's order. nullopt when CUDA can use none.
std::optional<TestedGpu> nearestGpu(const GuestView& view, const std::string& nic);

/// The finding when nearestGpu() returns none.
Finding noGpuForCuda(const std::string& subject);

/// Records which leased GPUs were tested.
class GpuCoverage {
 public:
  explicit GpuCoverage(std::vector<LeasedGpu> gpus) : gpus_(std::move(gpus)) {}

  void passed(const std::string& gpu, const std::string& vf);
  void failed(const std::string& gpu, const std::string& vf);
  /// Records the result with a GPU; one that vfpass did not lease is left out.
  void tested(const TestedGpu& gpu, const std::string& vf, bool passed);
  /// A finding about this GPU explains by itself why it was not tested.
  void explained(const std::string& gpu, const Finding& problem);
  void skipped(const std::string& gpu, const std::string& reason);

  [[nodiscard]] const std::vector<LeasedGpu>& leased() const { return gpus_; }

  /// Adds what another part of the verification recorded.
  void add(const GpuCoverage& other);

  /// One finding per leased GPU. A GPU that was not tested is not observable.
  [[nodiscard]] std::vector<Finding> findings() const;

 private:
  struct Result {
    std::vector<std::string> passedWith;
    std::vector<std::string> failedWith;
    std::vector<std::string> reasons;
    std::optional<Finding> problem;
  };
  static Finding findingOf(const std::string& gpu, const Result& result);

  std::vector<LeasedGpu> gpus_;
  std::map<std::string, Result> results_;
};

/// Records of a guest that cannot use GPU memory for RDMA why these GPUs (assignGpus) are not
/// tested.
void skipUnusableGpus(const GuestView& view, const std::vector<std::size_t>& assigned,
                      GpuCoverage& coverage);

/// The GPUs that a VF is tested with: those assigned to it (assignGpus) that are found, or without
/// leased GPUs the nearest one. `coverage` gets the reasons of the others. `nic`: the VF's address
/// in the guest.
std::vector<TestedGpu> gpusOf(const std::string& vf, const std::string& nic, const GuestView& view,
                              const std::vector<std::size_t>& assigned, GpuCoverage& coverage);

/// Whether GPU memory is tested: as requested, or because GPUs are leased.
bool testsGpus(GpuTest test, const std::vector<LeasedGpu>& gpus);

/// The finding about GPU memory when testsGpus() is false: waived, with the reason.
Finding gpusNotTested(GpuTest test, const GuestView& view);

}  // namespace vfpass::verify
