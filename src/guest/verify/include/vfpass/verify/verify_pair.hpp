#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// One of the two guests that exchange data.
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

}  // namespace vfpass::verify
