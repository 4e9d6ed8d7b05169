#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/verify/host_side.hpp"

// What a verification judges of a guest besides its data paths. All functions are pure, and each
// returns no finding for what an older probe does not report.

namespace vfpass::verify {

/// Settings of the guest's system that its RDMA programs need, whatever the device: `memory-lock`,
/// `kernel-update`. All are warnings at most.
std::vector<Finding> judgeGuestSystem(const GuestView& view);

/// `gpu-bar`: whether the BAR1 of each leased GPU, through which NICs reach its memory, has an
/// address in the guest (failed if not), and is as large as the memory (a warning if not). Waived
/// if none of them has such a BAR, or if vfpass leased none: other GPUs are not judged.
std::optional<Finding> judgeGpuBars(const GuestView& view, const std::vector<LeasedGpu>& leased);

/// `gpu-modules`: which of DMA-BUF and nvidia_peermem can work with the flavour and version of
/// NVIDIA's modules, CUDA, the kernel and the RDMA devices, and why the other cannot. A warning if
/// none can. nullopt if the guest does not report NVIDIA's driver. The GPUs and RDMA devices of
/// `view` are those that count (viewOfLeased). `guestSetup`: of this VM (guestSetupOf), for
/// remedies.
std::optional<Finding> judgeGpuModules(const GuestView& view, const std::string& guestSetup);

/// Why the guest's NIC cannot register DMA-BUF memory although a GPU exports it, by the test that
/// NCCL makes as well. Empty: one can, or it is unknown. `view` as for judgeGpuModules().
std::string dmaBufRefusal(const GuestView& view);

/// How to get one of the two to work.
std::string gpuModulesRemedy(const GuestView& view, const std::string& guestSetup);

/// `nccl-gid-index`: whether the GID at the index that NCCL is configured to use, in the guest's
/// /etc/nccl.conf or else in the mapping, is one of RoCE v2 with the VF's IP address. A warning
/// names this index and the one that the probe found. Waived if no index is set. nullopt for an
/// older probe and a mapping without an index.
std::optional<Finding> judgeNcclGidIndex(const std::string& subject, const GuestPort& port,
                                         const GuestView& view, const WantedInGuest& wanted);

/// Whether one of the port's GIDs is the IP address, with or without prefix length; true for a text
/// that is not an address.
bool hasGidOf(const GuestPort& port, const std::string& address);

/// `rdma-errors`: the error counters of a port that have increased between two reports of the
/// guest. Lost packets, a bad link and a receiver that is not ready are a warning; notifications of
/// congestion are shown for information. `after`: null if the guest did not report it, which waives
/// the check. nullopt for a probe, or a driver, without counters.
std::optional<Finding> judgeRdmaErrors(const std::string& subject, const RdmaPort& port,
                                       const GuestView& before, const GuestView* after);

/// `numa-placement`: whether the VM's vCPUs and memory are on the host nodes of its devices, and
/// whether the guest can tell the nodes apart. A warning at most. nullopt if the host has one node,
/// or if no device has a known node.
std::optional<Finding> judgePlacement(const HostPlacement& placement);

/// The same of a host whose vfpass is too old to report it: waived.
Finding placementNotReported();

/// Adds to each finding that failed, or that an error kept from being observed, the last line of a
/// guest's kernel log that may explain it, if there is one: `; SOURCE: LINE`. Findings of the host
/// stay. `log`: untrusted, but printable and bounded (readGuestView).
void quoteKernelLog(std::vector<Finding>& findings, const std::vector<std::string>& log,
                    const std::string& source = "the guest's kernel log");

/// `pcie-packets`: MaxReadReq, MaxPayload and Relaxed Ordering. Judges those of the VF's PF, which
/// the host reads and which the VF uses; shows those of the VF (`nic`, its address in the guest)
/// and of the leased GPUs as the guest sees them. A warning at most; waived if the host cannot read
/// the PF's. nullopt if neither side reports any. Pure.
std::optional<Finding> judgePackets(const Lease& lease, const std::string& nic,
                                    const GuestView& view, const HostSide& host,
                                    const std::vector<LeasedGpu>& gpus);

/// Whether the guest has a GPU that RDMA can reach, and by which mechanism. Waived when `wanted` is
/// false and the guest has none. `nvlink` comes from the mapping and determines the remedy for CUDA
/// error 802. `vfs` and `gpus` are leased to the VM: devices that the guest has otherwise are not
/// judged (viewOfLeased). The last finding has passed if RDMA can use the memory of a GPU; it is
/// not observable if none of the leased ones was found, and a warning if it only concerns those of
/// them that were found. `fabricManager` is VerifyPlan::fabricManager.
std::vector<Finding> judgeGpus(const GuestView& view, bool wanted,
                               std::optional<NvlinkMode> nvlink = {},
                               const std::vector<Lease>& vfs = {},
                               const std::vector<LeasedGpu>& gpus = {},
                               const std::string& fabricManager = {});

/// Whether GPU memory can be tested after these findings of judgeGpus(): with a GPU that RDMA may
/// reach.
bool isGpuUsable(const std::vector<Finding>& gpus);

/// Judges the distance between NIC and GPU in the guest, which NCCL relies on. Compares it with the
/// tree that the domain's XML describes and with the path on the host, if it is known. Adds the
/// guest's view of ACS and ATS for information. Pure.
std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const TestedGpu& gpu);

}  // namespace vfpass::verify
