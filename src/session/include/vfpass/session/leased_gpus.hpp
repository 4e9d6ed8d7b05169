#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/verify/leased_gpu.hpp"

namespace vfpass::session {

/// The GPUs among the running leases of one domain, each with its place in the guest and its path
/// from the PF of every leased VF. `machine` is the running domain's. Pure.
std::vector<verify::LeasedGpu> leasedGpus(const std::vector<Lease>& leases,
                                          const GuestMachine& machine, const Topology& host);

/// The place of a lease's device in the guest's PCI tree (topology::guestPath). Empty: the domain
/// XML does not have the device.
std::vector<PciAddress> guestPathOf(const GuestMachine& machine, const std::string& entry);

/// The narrowest link from the function up to the root complex. Both ends of a link report its
/// speed, so the ports on the path are included; a function without a reported link is skipped.
/// `atBestSpeed`: the speed that the device is capable of, because an idle GPU lowers it.
PcieLink narrowestLink(const Topology& host, std::size_t function, bool atBestSpeed);

}  // namespace vfpass::session
