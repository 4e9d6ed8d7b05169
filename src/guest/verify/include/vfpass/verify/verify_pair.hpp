#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// A guest of a verification: one of two that exchange data, or the only one.
struct PairGuest {
  agent::Agent& agent;
  std::string domainName;     ///< as findings name it
  std::vector<Lease> leases;  ///< running ones, VFs only
  /// Its host's view of a lease's device; may be empty, and may throw Error.
  std::function<HostSide(const Lease&)> host = {};
  /// Traffic counters of a lease's VF on its host; nullopt: not observable.
  ReadTraffic traffic;
  std::optional<NvlinkMode> nvlink = {};  ///< from its mapping
  std::vector<LeasedGpu> gpus = {};
  std::string machine = {};  ///< which host it runs on: guests with equal texts share a host
  /// Why its host cannot be asked, and what to do about it. Empty: it can.
  std::string unobserved = {};
  std::string unobservedRemedy = {};
  std::optional<HostPlacement> placement = {};  ///< nullopt: unknown
  /// As `traffic`, of RDMA packets alone; empty or nullopt: the host cannot tell them apart.
  ReadTraffic rdma = {};
  std::string fabricManager = {};  ///< as VerifyPlan::fabricManager
};

/// An entry of one guest and the entry of the other that it is tested with.
struct LeasePair {
  Lease initiator;
  Lease target;
};

/// Pairs entries of the same name first, then entries of the same link layer in order. An entry
/// without a counterpart is left out. Pure.
std::vector<LeasePair> pairLeases(const std::vector<Lease>& initiators,
                                  const std::vector<Lease>& targets);

/// Runs the checks in both guests, then between the VFs: reachability, RDMA write and read with
/// every byte checked by its owner, and the counters of both VFs. The two probes talk through the
/// host, so only RDMA has to work between the guests. Ignores `plan.leases`, `plan.gpus` and
/// `watch.traffic`.
/// Findings about the target have `NAME:` before their subject. A guest's failure is a finding, not
/// an exception; the timeouts of `initiator.agent` and `target.agent` bound the run.
VerifyReport verifyPair(const PairGuest& initiator, const PairGuest& target,
                        const agent::ProbeFile& probe, const VerifyPlan& plan,
                        const VerifyWatch& watch);

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
