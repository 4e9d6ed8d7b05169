#pragma once

#include <map>
#include <string>

#include "session.hpp"
#include "vfpass/guest/host_side.hpp"
#include "vfpass/topology/device_matrix.hpp"

namespace vfpass::cli {

/// What this host sees of the devices of one running domain, for verify. The tree is read once;
/// drivers and holders are read anew for each question.
class HostSight {
 public:
  /// `mtus`: what the mapping wants in the guest, by entry. `session` must outlive it.
  HostSight(Session& session, const DomainDescription& domain,
            std::map<std::string, unsigned> mtus);

  guest::HostSide of(const Lease& lease) const;

 private:
  [[nodiscard]] guest::DeviceHold holdOf(const Lease& lease) const;
  [[nodiscard]] std::optional<guest::GpuWay> gpuWay(const Lease& vf, std::size_t nic) const;
  /// Between two entries in the running domain's own tree; empty: not known.
  [[nodiscard]] std::string distanceInXml(const std::string& one, const std::string& other) const;

  Session& session_;
  Uuid domain_;
  std::vector<PciAddress> claims_;  ///< of the running domain
  std::vector<Lease> functions_;    ///< whole functions that the domain holds
  std::map<std::string, unsigned> mtus_;
  Topology topology_;
  topology::DeviceMatrix inXml_;
};

}  // namespace vfpass::cli
