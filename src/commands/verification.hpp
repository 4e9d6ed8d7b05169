#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/remote/peer_place.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::commands {

/// What `vfpass verify` was asked to do with a VM. Where it says nothing, the VM's mapping decides.
struct VerifyRequest {
  std::optional<remote::PeerPlace> peer;
  std::vector<remote::PeerPlace> furtherPeers;  ///< take part only in NCCL
  std::string probe;                            ///< the probe program on this host
  std::string folder = agent::probeFolder;      ///< its directory in the guest
  std::optional<double> minimumShare;           ///< 0 to 1
  bool gpu = false;                             ///< GPU memory, even if the mapping excludes it
  verify::RelaxedOrdering relaxedOrdering = verify::RelaxedOrdering::automatic;
  bool tools = true;
  bool concurrent = true;  ///< VFs at the same time where they share neither a PF nor a GPU
  std::string inject;      ///< a fault for the probe; empty: none
  /// For the whole verification; nullopt: by the number of VFs (deadlines::verifyVfs).
  std::optional<std::chrono::seconds> timeout;
  std::chrono::seconds wait{0};  ///< for the guest agent
  std::uint64_t messageBytes = std::uint64_t{64} << 10U;
  std::uint64_t iterations = 1000;
  bool allPairs = false;                        ///< with a peer: all pairs at the same time
  std::chrono::seconds sustain{10};             ///< time for which they move data
  bool sizes = false;                           ///< measure every message size
  std::optional<std::uint64_t> sizeIterations;  ///< for each size; nullopt: the probe's default
  bool nccl = false;  ///< also NCCL's collective operations, over the GPUs of all VMs
  std::optional<std::uint64_t> ncclBytes;  ///< their only size; nullopt: as `sizes` says
  /// Run by systemd after a start: its options are the administrator's for every start.
  bool afterStart = false;
};

/// The options by which this run demands or measures something else than the VM's mapping asks for.
/// Without one its report becomes the VM's last verification.
std::vector<std::string> ownLimits(const VerifyRequest& request, const VerifyPolicy& policy);

/// Verifies a running VM, with its peer if there is one. Unless the request has limits of its own,
/// keeps the report and ends a verification that is pending since the VM's start. Throws Error if
/// the verification cannot begin.
VerifyReport verifyVm(Session& session, const DomainDescription& domain,
                      const VerifyRequest& request);

/// Verifies the VMs that have started and whose mapping has `on-start: report`, and keeps a report
/// of each, also of those that cannot be verified. Runs this program again for each of them, with
/// the VM as an additional argument.
void verifyStarted(Session& session, const VerifyRequest& request);

/// Verifies one of them, a UUID. Throws no Error about the VM.
void verifyStartedVm(Session& session, const std::string& vm, const VerifyRequest& request);

/// What the VM's mapping wants in the guest, by entry.
std::map<std::string, verify::WantedInGuest> wantedInGuest(Session& session,
                                                           const DomainDescription& domain);

/// `nvlink:` of the VM's mapping.
std::optional<NvlinkMode> nvlinkOf(Session& session, const DomainDescription& domain);

/// VerifyPlan::fabricManager of the VM.
std::string fabricManagerOf(Session& session, const DomainDescription& domain);

/// The traffic counters of a VF of this host; nullopt if they cannot be read.
std::optional<VfTraffic> trafficOf(Session& session, const Lease& lease);

/// Verifications of one start that may begin: those before the last were interrupted.
inline constexpr unsigned mostAttempts = 3;

/// Verifications at the same time. A guest that hangs occupies one of libvirtd's 20 workers
/// (max_workers in libvirtd.conf) while its agent is asked.
inline constexpr std::size_t mostStarted = 16;

/// A verification that is over.
struct EndedVerification {
  Uuid domain;
  bool completed = false;  ///< false: it was interrupted
};

/// What verifyStartedVms() does with a VM.
struct StartedWork {
  /// Starts its verification, which ends by itself.
  std::function<void(const Uuid&)> start;
  /// Waits briefly until one ends; nullopt: none has. May throw Cancelled.
  std::function<std::optional<EndedVerification>()> wait;
  /// Reports that the VM was not verified.
  std::function<void(const Uuid&, const std::string& reason)> giveUp;
};

/// Verifies all VMs with a mark, also those that start meanwhile, until none is left: at the same
/// time, so that no guest delays the others. A mark stays until the verification has ended. A VM
/// whose verification was interrupted mostAttempts times is given up.
void verifyStartedVms(const std::filesystem::path& runDirectory, const StartedWork& work);

}  // namespace vfpass::commands
