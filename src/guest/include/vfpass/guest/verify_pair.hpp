#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vfpass/guest/verify.hpp"

namespace vfpass::guest {

/// One of two guests between which data is moved.
struct PairGuest {
  Agent& agent;
  std::string domainName;
  std::vector<Lease> leases;  ///< running ones, VFs only
  /// What the host knows of a lease's device; none: nothing.
  std::function<HostSide(const Lease&)> host = {};
  std::optional<NvlinkMode> nvlink = {};  ///< of its mapping
};

/// An entry of the one guest and the entry of the other that it is tried with.
struct LeasePair {
  Lease initiator;
  Lease target;
};

/// Entries of the same name first, then those of the same link layer in their order. An entry for
/// which none is left has no pair. Pure.
std::vector<LeasePair> pairLeases(const std::vector<Lease>& initiators,
                                  const std::vector<Lease>& targets);

/// Layer after layer in both guests, then from VF to VF: can they reach each other, RDMA write and
/// read with every byte checked by its owner, and the counters of both VFs. The two probes talk
/// through the host, so nothing but RDMA has to work between the guests. `plan.leases` is not
/// looked at. Findings about the target have `NAME:` before their subject. Never throws for what a
/// guest does; `initiator.agent` and `target.agent` bound the time.
VerifyReport verifyPair(const PairGuest& initiator, const PairGuest& target, const ProbeFile& probe,
                        const VerifyPlan& plan, const VerifyWatch& watch);

}  // namespace vfpass::guest
