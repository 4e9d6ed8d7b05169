#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Assigns a guest address to each lease of one mapping.
class Places {
 public:
  /// `input` must outlive it.
  explicit Places(const AttachInput& input) : input_(input) {}

  /// Keeps the address of the earlier lease, unless it is not available in the running domain;
  /// otherwise takes the next free one. Adds a problem when a running domain has no free port.
  void assign(const Lease* earlier, Lease& lease, std::vector<Objection>& objections);

 private:
  [[nodiscard]] std::string portRemedy() const;
  void plug(Lease& lease, std::vector<Objection>& objections);
  [[nodiscard]] bool isTaken(const Lease& lease, const PciAddress& place) const;

  const AttachInput& input_;
  std::size_t used_ = 0;
  std::set<PciAddress> assigned_;
  std::vector<Lease> placed_;
};

/// Places the leases in a tree that mirrors the host's, where the mapping requests it and the
/// persistent configuration changes. A device that is plugged into a running guest has its place
/// already, because the running tree cannot grow.
void mirrorPlaces(const AttachInput& input, AttachDecision& decision);

/// How many of `placed` would have the same distance to `candidate` in the guest as on the host. 0
/// if the trees are not known.
std::size_t matchingDistances(const AttachInput& input, const std::vector<Lease>& placed,
                              const Lease& candidate);

}  // namespace vfpass::plan
