#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// Distances between all devices of one VM.
struct DeviceMatrix {
  std::vector<std::string> names;  ///< the mapping's entries; a device that is not ours by address
  /// Square, in the order of `names`; empty where one of the two has no place in the tree.
  std::vector<std::vector<std::optional<Distance>>> distances;

  /// Between two entries of `names`; empty, too, where one of them is not there.
  [[nodiscard]] std::optional<Distance> between(const std::string& one,
                                                const std::string& other) const;

  bool operator==(const DeviceMatrix&) const = default;
};

/// The machine's passed devices as they sit on the host; at least PIX between two devices.
DeviceMatrix hostMatrix(const GuestMachine& machine, const Topology& host);

/// The same devices as they sit in the guest.
DeviceMatrix guestMatrix(const GuestMachine& machine, const Topology& host);

/// The machine with the PF in place of each leased VF: that is there also while the VFs are not,
/// and no distance changes.
GuestMachine withPfs(GuestMachine machine, const std::vector<Lease>& leases);

}  // namespace vfpass::topology
