#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_session.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/verify/host_side.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::commands {

/// The GPUs among the running leases of one domain, each with its place in the guest and its path
/// from the PF of every leased VF. `machine` is the running domain's. Pure.
std::vector<verify::LeasedGpu> leasedGpus(const std::vector<Lease>& leases,
                                          const GuestMachine& machine, const Topology& host);

/// The link right above each leased device, above a VF's PF, by entry (verify::VerifyPlan::links).
/// Pure.
std::map<std::string, PcieLink> linksAboveLeased(const std::vector<Lease>& leases,
                                                 const Topology& host);

/// Where a domain runs and where its running leases' devices are. `liveXml`: the running domain's.
/// Pure.
verify::HostPlacement placementOf(const std::vector<Lease>& leases, std::string_view liveXml,
                                  const Topology& host);

/// The sizes of a PF's packets, and the largest payload that it and all functions below its root
/// port support. `pf`: index in the topology. nullopt if its configuration space cannot be read.
std::optional<verify::HostPackets> packetsOf(const host::Root& root, const Topology& host,
                                             std::size_t pf);

/// The host's view of the devices of one running domain, for verify. The PCI tree is read once;
/// drivers and holders are read again for each call of of().
class HostObserver {
 public:
  /// `wanted`: from the mapping, by entry. `session` must outlive this object.
  HostObserver(Session& session, const DomainDescription& domain,
               std::map<std::string, verify::WantedInGuest> wanted);

  [[nodiscard]] verify::HostSide of(const Lease& lease) const;

  [[nodiscard]] const std::vector<verify::LeasedGpu>& gpus() const { return gpus_; }
  [[nodiscard]] const verify::HostPlacement& placement() const { return placement_; }
  [[nodiscard]] const std::map<std::string, PcieLink>& links() const { return links_; }

 private:
  [[nodiscard]] verify::DeviceHold holdOf(const Lease& lease) const;

  Session& session_;
  Uuid domain_;
  std::vector<PciAddress> claims_;  ///< of the running domain
  std::vector<verify::LeasedGpu> gpus_;
  verify::HostPlacement placement_;
  std::map<std::string, PcieLink> links_;
  std::map<std::string, verify::WantedInGuest> wanted_;
  GuestMachine machine_;  ///< of the running domain
  Topology topology_;
};

}  // namespace vfpass::commands
