#pragma once

#include <map>
#include <string>

#include "vfpass/session/command_session.hpp"
#include "vfpass/topology/device_matrix.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::session {

/// The host's view of the devices of one running domain, for verify. The PCI tree is read once;
/// drivers and holders are read again for each call of of().
class HostObserver {
 public:
  /// `mtus`: the guest MTUs in the mapping, by entry. `session` must outlive this object.
  HostObserver(Session& session, const DomainDescription& domain,
               std::map<std::string, unsigned> mtus);

  verify::HostSide of(const Lease& lease) const;

 private:
  [[nodiscard]] verify::DeviceHold holdOf(const Lease& lease) const;
  [[nodiscard]] std::optional<verify::GpuPath> gpuPath(const Lease& vf, std::size_t nic) const;
  /// Distance between two entries in the running domain's own tree; empty if unknown.
  [[nodiscard]] std::string distanceInXml(const std::string& one, const std::string& other) const;

  Session& session_;
  Uuid domain_;
  std::vector<PciAddress> claims_;  ///< of the running domain
  std::vector<Lease> functions_;    ///< leases of whole PCI functions
  std::map<std::string, unsigned> mtus_;
  Topology topology_;
  topology::DeviceMatrix inXml_;
};

}  // namespace vfpass::session
