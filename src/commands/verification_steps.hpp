#pragma once

#include <optional>
#include <vector>

#include "verification.hpp"
#include "vfpass/doctor/kernel_lines.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::commands {

/// The plan for one VM, without its GPUs.
verify::VerifyPlan verifyPlanFor(Session& session, const DomainDescription& domain,
                                 const VerifyRequest& request);

/// The time for the whole verification.
std::chrono::seconds timeoutOf(const VerifyRequest& request, const verify::VerifyPlan& plan);

/// Returns when the guest agent answers, or `wait` has passed.
void waitForAgent(Session& session, Hypervisor& hypervisor, const DomainDescription& domain,
                  std::chrono::seconds wait);

verify::VerifyWatch watchOf(Session& session);

/// For agents: updates the progress line, and throws Cancelled if a stop was requested.
agent::Agent::Checkpoint checkpointOf(Session& session);

/// Bytes of the results that NCCL's operations are run with, ascending. Pure.
std::vector<std::uint64_t> ncclSizesOf(const VerifyRequest& request);

/// Runs NCCL's collective operations over the GPUs of these guests, the verified one first, if the
/// request asks for it. `peerName`: as in the report.
void addNccl(Session& session, const DomainDescription& domain, const VerifyRequest& request,
             const std::vector<verify::PairGuest>& guests, const agent::ProbeFile& probe,
             const verify::VerifyPlan& plan, const std::string& peerName, VerifyReport& report);

/// With request.peer, on this host or another one.
VerifyReport verifyWithPeer(Session& session, const DomainDescription& domain,
                            const VerifyRequest& request);

/// Adds the report to those kept for its VM.
void keepReport(Session& session, const VerifyReport& report);

/// The mapping's `verify:` block; defaults without a mapping.
VerifyPolicy verifyPolicyOf(Session& session, const DomainDescription& domain);

/// `vf-settings`: whether MAC, VLAN and the other settings that the kernel reports for this VF of a
/// running guest are those of its lease or, for a setting that the lease leaves out, the neutral
/// value that a start sets. A warning with each difference, for example after another program has
/// set the VLAN; waived if the kernel does not show one of them. Pure.
Finding judgeLeasedSettings(const Lease& vf, const Inventory& inventory, const std::string& bootId);

/// Adds to each failed finding the last line of the host's kernel log about its devices: for an
/// entry, `(kernel: ...)` with a line about its VF, that VF's PF or its whole function; for a
/// finding about GPU memory also one about a GPU of the VM. `leases` are the VM's. Pure.
void explainByKernelLog(const std::vector<doctor::KernelLine>& lines,
                        const std::vector<Lease>& leases, VerifyReport& report);

/// Adds to each failed finding about data in GPU memory why the host's NIC cannot reach the GPU,
/// and the remedy, if VFIO does not map the GPU's BAR for it. Wrong bytes have arrived, so they
/// have another reason. Pure.
void explainByPeerMapping(const std::optional<PeerMapping>& peers, VerifyReport& report);

}  // namespace vfpass::commands
